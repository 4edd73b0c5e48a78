/**
 * Frees a buffer whose only view is given. Left to the garbage collector, such buffers would take
 * many times the memory in use.
 */
export function freeOwnMemory({ buffer, byteLength }: ArrayBufferView): void {
  const isWhole = buffer instanceof ArrayBuffer && byteLength === buffer.byteLength;
  // Transferring to an empty buffer frees the memory.
  if (isWhole && byteLength > 0) buffer.transfer(0);
}

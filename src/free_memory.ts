/**
 * Frees a view's buffer if the view spans it; no view of the buffer may be used afterwards. If such
 * buffers were left to the garbage collector, memory would grow to many times the amount in use.
 */
export function freeOwnMemory({ buffer, byteLength }: ArrayBufferView): void {
  const isWhole = buffer instanceof ArrayBuffer && byteLength === buffer.byteLength;
  // Transferring to an empty buffer frees the memory.
  if (isWhole && byteLength > 0) buffer.transfer(0);
}

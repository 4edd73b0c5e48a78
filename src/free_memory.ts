/**
 * Frees the buffer of a view that spans it; no view of it may be used afterwards. The garbage
 * collector would let such memory grow to many times the amount in use.
 */
export function freeOwnMemory({ buffer, byteLength }: ArrayBufferView): void {
  const isWhole = buffer instanceof ArrayBuffer && byteLength === buffer.byteLength;
  // Transferring to an empty buffer frees the memory.
  if (isWhole && byteLength > 0) buffer.transfer(0);
}

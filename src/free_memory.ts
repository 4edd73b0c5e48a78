/**
 * Frees the memory of a view that covers all of it; no view of it may be read any more. A garbage
 * collector counts its own objects, and runs only when their memory is many times what is in use.
 */
export function freeOwnMemory({ buffer, byteLength }: ArrayBufferView): void {
  const isWhole = buffer instanceof ArrayBuffer && byteLength === buffer.byteLength;
  // To zero bytes elsewhere: what was here is free.
  if (isWhole && byteLength > 0) buffer.transfer(0);
}

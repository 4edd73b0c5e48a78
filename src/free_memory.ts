/**
 * Gives memory back at once that nobody reads any more, nor any view of it: a collector counts its
 * own objects, and comes by when what hangs on them is many times what is in use.
 */
export function freeMemory(memory: ArrayBufferLike): void {
  // To zero bytes elsewhere: what was here is free.
  if (memory instanceof ArrayBuffer && memory.byteLength > 0) memory.transfer(0);
}

/** As `freeMemory()`, for bytes or numbers that have their memory for themselves. */
export function freeOwnMemory({ buffer, byteLength }: ArrayBufferView): void {
  if (byteLength === buffer.byteLength) freeMemory(buffer);
}

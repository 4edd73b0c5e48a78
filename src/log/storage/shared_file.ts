/** An open file that several read at a time, and that is closed once none of them does any more. */
import { assert } from "../../assert.ts";
import type { StorageFile } from "./storage.ts";

export class SharedFile {
  readonly file: StorageFile;
  #readers = 0;
  #closing: PromiseWithResolvers<void> | null = null;

  constructor(file: StorageFile) {
    this.file = file;
  }

  /** As `StorageFile.read()`; what begins before `close()` is called comes to its end. */
  async read(into: Uint8Array, position: number): Promise<number> {
    assert(this.#closing === null, "a file that is being closed is not read any more");
    this.#readers += 1;
    try {
      return await this.file.read(into, position);
    } finally {
      this.#readers -= 1;
      this.#closeWhenIdle();
    }
  }

  /** Returns when the file is closed; to be called once. */
  close(): Promise<void> {
    this.#closing = Promise.withResolvers();
    this.#closeWhenIdle();
    return this.#closing.promise;
  }

  #closeWhenIdle(): void {
    if (this.#closing === null || this.#readers > 0) return;
    this.file.close().then(this.#closing.resolve, this.#closing.reject);
  }
}

/**
 * A file in memory: the list of changes made to it, and how many of them a sync has made durable,
 * so that a crash can keep any of the others.
 */
import { Buffer } from "node:buffer";

/** A write, or (without bytes) a truncate to `position`. */
export interface Change {
  position: number;
  bytes: Uint8Array | null;
}

export class MemoryFile {
  /** What a reader sees is the first `sizeBytes` of it. */
  #buffer = Buffer.alloc(0);
  sizeBytes = 0;
  readonly #changes: Change[] = [];
  /** So many of the changes are durable. */
  #syncedChanges = 0;

  /** A durable file with these bytes. */
  static of(bytes: Uint8Array): MemoryFile {
    const file = new MemoryFile();
    if (bytes.length > 0) file.change({ position: 0, bytes: Buffer.from(bytes) });
    file.markSynced(file.changesSoFar);
    return file;
  }

  get changesSoFar(): number {
    return this.#changes.length;
  }

  markSynced(changes: number): void {
    this.#syncedChanges = Math.max(this.#syncedChanges, changes);
  }

  bytes(): Buffer {
    return Buffer.from(this.#buffer.subarray(0, this.sizeBytes));
  }

  read(into: Uint8Array, position: number): number {
    const piece = this.#buffer.subarray(
      Math.min(position, this.sizeBytes),
      Math.min(position + into.length, this.sizeBytes),
    );
    into.set(piece);
    return piece.length;
  }

  change(change: Change): void {
    this.#changes.push(change);
    this.#apply(change);
  }

  /** The bytes with the durable changes and what is kept of the others. */
  afterCrash(keptBytes: (change: Change) => number): Buffer {
    const file = new MemoryFile();
    this.#changes.forEach((change, number) => {
      if (number < this.#syncedChanges) file.#apply(change);
      else file.#applyPart(change, keptBytes(change));
    });
    return file.bytes();
  }

  #applyPart({ position, bytes }: Change, keptBytes: number): void {
    if (keptBytes === 0) return;
    this.#apply({ position, bytes: bytes && bytes.subarray(0, keptBytes) });
  }

  #apply({ position, bytes }: Change): void {
    if (bytes === null) {
      this.#resize(position);
      return;
    }
    this.#resize(Math.max(this.sizeBytes, position + bytes.length));
    this.#buffer.set(bytes, position);
  }

  /** Bytes that were never written are zero. */
  #resize(sizeBytes: number): void {
    if (sizeBytes > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(sizeBytes, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.sizeBytes);
      this.#buffer = larger;
    }
    this.#buffer.fill(0, Math.min(sizeBytes, this.sizeBytes), this.sizeBytes);
    this.sizeBytes = sizeBytes;
  }
}

/**
 * A file on the simulated disk: its visible bytes, its durable bytes, and all contents that each
 * sector had in between, any of which can survive a crash. `simulated_disk.ts` describes the model.
 */
import { Buffer } from "node:buffer";
import { flipBit } from "./corrupt.ts";
import type { CrashChoice } from "./simulated_crash.ts";

/** The unit that a disk writes atomically. */
export const SECTOR_BYTES = 512;

/** A write or, without bytes, a change of the size to `position`. */
export interface Change {
  position: number;
  bytes: Uint8Array | null;
}

/** The contents of sectors by sector number, from oldest to newest. */
type Versions = Map<number, Buffer[]>;

/** The fate of pages that a failed fsync could not write (see `simulated_disk.ts`). */
export type FailedPages = "shown" | "dropped";

export class SimulatedFile {
  /** Buffers are immutable: a change creates a new one. */
  #cached: Buffer;
  #durable: Buffer;
  /** Changes since the last sync, whether it failed or not. */
  #changes: Change[] = [];
  /** Contents that failed syncs may have left on the disk; no later sync writes them. */
  #lost: Versions = new Map();
  #lostSizes: number[] = [];

  /** Creates a durable file. @param bytes initial content, never modified. */
  constructor(bytes: Uint8Array = Buffer.alloc(0)) {
    this.#cached = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#durable = this.#cached;
  }

  get sizeBytes(): number {
    return this.#cached.length;
  }

  /** Whether a crash leaves the file unchanged. */
  get isDurable(): boolean {
    return this.#changes.length === 0 && this.#lost.size === 0 && this.#lostSizes.length === 0;
  }

  /**
   * The number of sectors with several possible contents after a crash; null if a crash leaves the
   * file unchanged.
   */
  get unsyncedSectors(): number | null {
    if (this.isDurable) return null;
    const sectors = this.#versions(this.#changes).size;
    return sectors === 0 && this.#sizes(this.#changes).length === 1 ? null : sectors;
  }

  /** The amount by which a crash may change the size. */
  get unsyncedBytes(): number {
    const sizes = this.#sizes(this.#changes);
    return Math.max(...sizes) - Math.min(...sizes);
  }

  /** The number of unsynced changes, all of which a sync that starts now covers. */
  get changesSoFar(): number {
    return this.#changes.length;
  }

  /** A copy of the visible contents. */
  bytes(): Buffer {
    return Buffer.from(this.#cached);
  }

  /** Reads into `into` from `position`. @returns the number of bytes read. */
  read(into: Uint8Array, position: number): number {
    return this.#cached.copy(into, 0, position);
  }

  flipBit(bit: number): void {
    this.#cached = flipBit(this.#cached, bit);
  }

  change(change: Change): void {
    this.#changes.push(change);
    this.#cached = changed(this.#cached, change);
  }

  /** Makes the first `changes` changes durable, along with all sectors that they touch. */
  sync(changes: number): void {
    const synced = this.#changes.splice(0, changes);
    const sectors = this.#lost.size === 0 ? [] : synced.flatMap((change) => this.#sectors(change));
    for (const change of synced) this.#durable = changed(this.#durable, change);
    for (const sector of sectors) {
      if (this.#lost.delete(sector)) {
        this.#durable = withSector(this.#durable, sector, this.#cached);
      }
    }
    if (this.#durable.length === this.#cached.length) this.#lostSizes = [];
  }

  /** Fails a sync. Its changes are no longer pending, but may or may not be on the disk. */
  failSync(changes: number, pages: FailedPages): void {
    const failed = this.#changes.slice(0, changes);
    if (failed.length === 0) return;
    if (pages === "dropped") {
      const sectors = new Set(failed.flatMap((change) => this.#sectors(change)));
      // Readers see a sector's durable content again, but the file size is unchanged.
      for (const sector of sectors) {
        this.#cached = withSector(this.#cached, sector, this.#durable);
      }
    }
    this.#lost = this.#versions(failed);
    this.#lostSizes = this.#sizes(failed).slice(1);
    this.#changes = this.#changes.slice(changes);
  }

  /** The contents after a crash. */
  afterCrash(choice: CrashChoice): Uint8Array {
    if (this.isDurable) return this.#durable;
    const sizes = this.#sizes(this.#changes);
    const versions = [...this.#versions(this.#changes)].sort(([a], [b]) => a - b);
    const left: [sector: number, content: Buffer][] = [];
    versions.forEach(([number, contents], place) => {
      const sector = { place, count: versions.length, versions: contents.length + 1 };
      const newer = choice.version(sector);
      if (newer > 0) left.push([number, contents[newer - 1]!]);
    });
    return resized(withSectors(this.#durable, left), choice.sizeBytes(sizes));
  }

  /** Every size that the file may have on the disk, beginning with the durable one. */
  #sizes(changes: readonly Change[]): number[] {
    const sizes = [this.#durable.length, ...this.#lostSizes];
    let size = sizes.at(-1)!;
    for (const { position, bytes } of changes) {
      size = bytes === null ? position : Math.max(size, position + bytes.length);
      if (size !== sizes.at(-1)) sizes.push(size);
    }
    return sizes;
  }

  /** Possible contents besides the durable one: those from failed syncs, then unsynced ones. */
  #versions(changes: readonly Change[]): Versions {
    const versions: Versions = new Map([...this.#lost].map(([sector, all]) => [sector, [...all]]));
    const lost = [...versions].map(([sector, all]): [number, Buffer] => [sector, all.at(-1)!]);
    let bytes = withSectors(this.#durable, lost);
    for (const change of changes) {
      const before = bytes;
      bytes = changed(before, change);
      for (const sector of sectorsOf(change, before.length)) {
        const content = sectorAt(bytes, sector);
        if (content.equals(sectorAt(before, sector))) continue;
        versions.set(sector, [...versions.get(sector) ?? [], content]);
      }
    }
    return versions;
  }

  #sectors(change: Change): number[] {
    const lostEnd = (Math.max(-1, ...this.#lost.keys()) + 1) * SECTOR_BYTES;
    const sizeBytes = Math.max(this.#cached.length, this.#durable.length, lostEnd);
    return sectorsOf(change, sizeBytes);
  }
}

function changed(before: Buffer, { position, bytes }: Change): Buffer {
  if (bytes === null) return resized(before, position);
  const after = resized(before, Math.max(before.length, position + bytes.length));
  after.set(bytes, position);
  return after;
}

/** A copy with other contents in some sectors, and extended if necessary. */
function withSectors(
  before: Buffer,
  sectors: readonly [sector: number, content: Buffer][],
): Buffer {
  const ends = sectors.map(([sector, { length }]) => sector * SECTOR_BYTES + length);
  const after = resized(before, ends.reduce((a, b) => Math.max(a, b), before.length));
  for (const [sector, content] of sectors) after.set(content, sector * SECTOR_BYTES);
  return after;
}

/** A copy with the given size, padded with zeros. */
function resized(bytes: Buffer, sizeBytes: number): Buffer {
  const copy = Buffer.alloc(sizeBytes);
  bytes.copy(copy);
  return copy;
}

/** A copy in which one sector is copied from `from`, without changing the size. */
function withSector(bytes: Buffer, sector: number, from: Buffer): Buffer {
  const position = sector * SECTOR_BYTES;
  const end = Math.min(position + SECTOR_BYTES, bytes.length);
  if (end <= position) return bytes;
  return changed(bytes, { position, bytes: resized(from.subarray(position, end), end - position) });
}

/** The sectors that a change may alter in a file of this size. */
function sectorsOf({ position, bytes }: Change, sizeBytes: number): number[] {
  const end = bytes === null ? sizeBytes : position + bytes.length;
  const firstSector = Math.floor(position / SECTOR_BYTES);
  const count = Math.max(0, Math.ceil(end / SECTOR_BYTES) - firstSector);
  return Array.from({ length: count }, (_, place) => firstSector + place);
}

/** The content of a sector, with zeros past the end of the file. */
function sectorAt(bytes: Buffer, sector: number): Buffer {
  const position = sector * SECTOR_BYTES;
  return resized(bytes.subarray(position, position + SECTOR_BYTES), SECTOR_BYTES);
}

/**
 * A file of the simulated disk: its bytes as readers see them, those that are durable, and of each
 * sector all that it held in between, any of which a crash may leave. `simulated_disk.ts` tells the
 * model.
 */
import type { Buffer } from "node:buffer";
import { SimulatedBytes } from "./simulated_bytes.ts";
import type { CrashChoice } from "./simulated_crash.ts";

/** What a disk writes as a whole or not at all. */
export const SECTOR_BYTES = 512;

/** A write, or (without bytes) a change of the size to `position`. */
export interface Change {
  position: number;
  bytes: Uint8Array | null;
}

/** The contents of sectors by their number, from oldest to newest. */
type Versions = Map<number, Buffer[]>;

/** What becomes of the pages that a failed fsync could not write; see `simulated_disk.ts`. */
export type FailedPages = "shown" | "dropped";

export class SimulatedFile {
  readonly #cached: SimulatedBytes;
  readonly #durable: SimulatedBytes;
  /** Since the last sync, whether it failed or not. */
  #changes: Change[] = [];
  /** What failed syncs may have left on the disk, and no later one will. */
  #lost: Versions = new Map();
  #lostSizes: number[] = [];

  /** A durable file. @param bytes stay as they are. */
  constructor(bytes?: Uint8Array) {
    this.#cached = new SimulatedBytes(bytes);
    this.#durable = new SimulatedBytes(bytes);
  }

  get sizeBytes(): number {
    return this.#cached.sizeBytes;
  }

  /** Whether a crash leaves it as it is. */
  get isDurable(): boolean {
    return this.#changes.length === 0 && this.#lost.size === 0 && this.#lostSizes.length === 0;
  }

  /** How many sectors a crash may leave in more than one way; null: it leaves the file as it is. */
  get unsyncedSectors(): number | null {
    if (this.isDurable) return null;
    const sectors = this.#versions(this.#changes).size;
    return sectors === 0 && this.#sizes(this.#changes).length === 1 ? null : sectors;
  }

  /** By how much a crash may leave it longer or shorter. */
  get unsyncedBytes(): number {
    const sizes = this.#sizes(this.#changes);
    return Math.max(...sizes) - Math.min(...sizes);
  }

  /** For `sync()`: what is changed later is not part of it. */
  get changesSoFar(): number {
    return this.#changes.length;
  }

  bytes(): Buffer {
    return this.#cached.slice(0, this.#cached.sizeBytes);
  }

  read(into: Uint8Array, position: number): number {
    return this.#cached.read(into, position);
  }

  change(change: Change): void {
    this.#changes.push(change);
    apply(this.#cached, change);
  }

  /** The first changes become durable; so does the rest of each sector that they touch. */
  sync(changes: number): void {
    const synced = this.#changes.splice(0, changes);
    const sectors = this.#lost.size === 0 ? [] : synced.flatMap((change) => this.#sectors(change));
    for (const change of synced) apply(this.#durable, change);
    for (const sector of sectors) {
      if (!this.#lost.delete(sector)) continue;
      const start = sector * SECTOR_BYTES;
      const end = Math.min(start + SECTOR_BYTES, this.#durable.sizeBytes);
      if (end > start) this.#durable.write(this.#cached.slice(start, end), start);
    }
    if (this.#durable.sizeBytes === this.#cached.sizeBytes) this.#lostSizes = [];
  }

  /** A sync fails: what it was to write is taken for written, and may be on the disk or not. */
  failSync(changes: number, pages: FailedPages): void {
    const failed = this.#changes.slice(0, changes);
    if (failed.length === 0) return;
    if (pages === "dropped") {
      const sectors = new Set(failed.flatMap((change) => this.#sectors(change)));
      for (const sector of sectors) this.#forget(sector);
    }
    this.#lost = this.#versions(failed);
    this.#lostSizes = this.#sizes(failed).slice(1);
    this.#changes = this.#changes.slice(changes);
  }

  /** What is found after a crash. */
  afterCrash(path: string, choice: CrashChoice): Uint8Array {
    if (this.isDurable) return this.#durable.snapshot();
    const sizes = this.#sizes(this.#changes);
    const versions = [...this.#versions(this.#changes)].sort(([a], [b]) => a - b);
    const left = new SimulatedBytes(this.#durable.slice(0, this.#durable.sizeBytes));
    versions.forEach(([sector, contents], place) => {
      const newer = choice.version({
        path,
        place,
        count: versions.length,
        versions: contents.length + 1,
      });
      if (newer > 0) left.write(contents[newer - 1]!, sector * SECTOR_BYTES);
    });
    left.resize(choice.sizeBytes(sizes, path));
    return left.slice(0, left.sizeBytes);
  }

  /** Every size that the file may have on the disk, the durable one first. */
  #sizes(changes: readonly Change[]): number[] {
    const sizes = [this.#durable.sizeBytes, ...this.#lostSizes];
    let size = sizes.at(-1)!;
    for (const { position, bytes } of changes) {
      size = bytes === null ? position : Math.max(size, position + bytes.length);
      if (size !== sizes.at(-1)) sizes.push(size);
    }
    return sizes;
  }

  /** What sectors held after the durable content: what was lost, then what is not synced. */
  #versions(changes: readonly Change[]): Versions {
    const versions: Versions = new Map([...this.#lost].map(([sector, all]) => [sector, [...all]]));
    const bytes = new SimulatedBytes(this.#durable.slice(0, this.#durable.sizeBytes));
    for (const [sector, contents] of versions) {
      bytes.write(contents.at(-1)!, sector * SECTOR_BYTES);
    }
    for (const change of changes) {
      const sectors = sectorsOf(change, bytes.sizeBytes);
      const before = sectors.map((sector) => sectorAt(bytes, sector));
      apply(bytes, change);
      sectors.forEach((sector, place) => {
        const content = sectorAt(bytes, sector);
        if (content.equals(before[place]!)) return;
        versions.set(sector, [...versions.get(sector) ?? [], content]);
      });
    }
    return versions;
  }

  #sectors(change: Change): number[] {
    const lostEnd = (Math.max(-1, ...this.#lost.keys()) + 1) * SECTOR_BYTES;
    const { sizeBytes } = this.#cached;
    return sectorsOf(change, Math.max(sizeBytes, this.#durable.sizeBytes, lostEnd));
  }

  /** Readers see the durable content of a sector again; the size stays. */
  #forget(sector: number): void {
    const start = sector * SECTOR_BYTES;
    const end = Math.min(start + SECTOR_BYTES, this.#cached.sizeBytes);
    if (end > start) this.#cached.write(this.#durable.slice(start, end), start);
  }
}

function apply(target: SimulatedBytes, { position, bytes }: Change): void {
  if (bytes === null) target.resize(position);
  else target.write(bytes, position);
}

/** The sectors whose content a change may alter, in a file of that size. */
function sectorsOf({ position, bytes }: Change, sizeBytes: number): number[] {
  const end = bytes === null ? sizeBytes : position + bytes.length;
  const firstSector = Math.floor(position / SECTOR_BYTES);
  const count = Math.max(0, Math.ceil(end / SECTOR_BYTES) - firstSector);
  return Array.from({ length: count }, (_, place) => firstSector + place);
}

function sectorAt(bytes: SimulatedBytes, sector: number): Buffer {
  return bytes.slice(sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES);
}

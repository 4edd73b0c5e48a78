/**
 * Chooses which unsynced changes survive a crash. The disk asks once per name change, sector and
 * file size. `simulated_disk.ts` describes the allowed choices.
 */
import { type Random, randomInteger } from "../../tools/support/random.ts";

/** A change to directory entries. A rename is a single change to two paths. */
export interface NameChange {
  /** All paths that the change affects. */
  paths: readonly string[];
}

/** A file sector that was overwritten since it was last durable. */
export interface UnsyncedSector {
  /** Index of the sector among the `count` unsynced sectors of its file. */
  place: number;
  count: number;
  /** Number of possible contents. Content 0 is the durable one, and the last is the newest. */
  versions: number;
}

export interface CrashChoice {
  /**
   * Whether a name change survives. It cannot if an earlier change to the same path is lost.
   * @param place index among the unsynced changes.
   */
  keepsName(change: NameChange, place: number): boolean;
  /** Index of the content that a sector has after the crash. */
  version(sector: UnsyncedSector): number;
  /** The size after the crash, anywhere from the smallest to the largest since the last sync. */
  sizeBytes(sizes: readonly number[]): number;
}

/** The choices for bytes and sizes, without those for names. */
type LeftBytes = Omit<CrashChoice, "keepsName">;

const first = (sizes: readonly number[]) => sizes[0]!;
const last = (sizes: readonly number[]) => sizes.at(-1)!;

function between(sizes: readonly number[], part: number): number {
  return first(sizes) + Math.floor((last(sizes) - first(sizes)) * part);
}

/** Keeps the newest content of some sectors, and the newest size. */
function sectors(isLeft: (sector: UnsyncedSector) => boolean): LeftBytes {
  return {
    version: (sector) => isLeft(sector) ? sector.versions - 1 : 0,
    sizeBytes: last,
  };
}

/** Keeps the newest content, up to a size. */
function upTo(sizeBytes: (sizes: readonly number[]) => number): LeftBytes {
  return { version: ({ versions }) => versions - 1, sizeBytes };
}

const NO_BYTES: LeftBytes = { version: () => 0, sizeBytes: first };
const ALL_BYTES: LeftBytes = upTo(last);

/** Named patterns of unsynced bytes that survive. */
const TORN: Record<string, LeftBytes> = {
  "no bytes": NO_BYTES,
  "all bytes": ALL_BYTES,
  "only the size": sectors(() => false),
  "the first sector": sectors(({ place }) => place === 0),
  "all but the first sector": sectors(({ place }) => place > 0),
  "the last sector": sectors(({ place, count }) => place === count - 1),
  "all but the last sector": sectors(({ place, count }) => place < count - 1),
  "every other sector": sectors(({ place }) => place % 2 === 0),
  "the remaining sectors": sectors(({ place }) => place % 2 === 1),
  "half the length": upTo((sizes) => between(sizes, 0.5)),
  "all but one byte": upTo((sizes) => between(sizes, 0.999_999)),
  "one byte": upTo((sizes) => Math.min(first(sizes) + 1, last(sizes))),
};

export const TORN_SHAPES: readonly string[] = Object.keys(TORN);

const ALL_NAMES = () => true;

/** A crash that keeps all names, and the bytes in the TORN pattern `shape`. */
export function torn(shape: string): CrashChoice {
  return { ...TORN[shape]!, keepsName: ALL_NAMES };
}

/** Only synced data, which is the minimum that a crash can leave. */
export const SYNCED_ONLY: CrashChoice = { ...NO_BYTES, keepsName: () => false };
/** Everything, as when the process is killed but the machine keeps running. */
export const ALL_DONE: CrashChoice = { ...ALL_BYTES, keepsName: ALL_NAMES };
/** All names, but only synced bytes. */
export const NAMES_ONLY: CrashChoice = { ...NO_BYTES, keepsName: ALL_NAMES };

/** Keeps all names, and the first `bytes` unsynced bytes appended to each file. */
export function keptBytes(bytes: number): CrashChoice {
  const left = upTo((sizes) => Math.min(first(sizes) + bytes, last(sizes)));
  return { ...left, keepsName: ALL_NAMES };
}

/** Any state that a crash can leave. */
export function anyOf(random: Random): CrashChoice {
  const names = random();
  const newest = random();
  return {
    keepsName: () => random() < names,
    version: ({ versions }) =>
      random() < newest ? versions - 1 : randomInteger(random, 0, versions - 1),
    sizeBytes: (sizes) => {
      const place = random();
      if (place < 0.3) return first(sizes);
      if (place < 0.7) return last(sizes);
      return randomInteger(random, Math.min(...sizes), Math.max(...sizes));
    },
  };
}

/** Named states of a crashed machine, from the least surviving data to the most. */
export const CRASHES: Record<string, CrashChoice> = {
  "with only synced changes": SYNCED_ONLY,
  "with all names": NAMES_ONLY,
  "with all names and half of each file": torn("half the length"),
  "with all changes": ALL_DONE,
};

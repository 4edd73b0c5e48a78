/**
 * Chooses which unsynced changes survive a crash. A disk asks for a choice per name change, sector
 * and size; `simulated_disk.ts` describes the allowed answers.
 */
import { type Random, randomInteger } from "../../tools/support/random.ts";

/** A name change in directories; a rename is a single change of two names. */
export interface NameChange {
  kind: "create" | "makeFolder" | "rename" | "remove";
  /** All paths that it changes. */
  paths: readonly string[];
}

/** A sector of a file that has had several contents since it was last durable. */
export interface UnsyncedSector {
  path: string;
  /** Index among its file's unsynced sectors, and their number. */
  place: number;
  count: number;
  /** Number of contents, of which 0 is the durable one and the last is the newest. */
  versions: number;
}

export interface CrashChoice {
  /**
   * Whether a name change survives. It cannot if an earlier change of the same name is lost.
   * @param place index among the unsynced changes.
   */
  keepsName(change: NameChange, place: number): boolean;
  /** Which content of a sector survives. */
  version(sector: UnsyncedSector): number;
  /** Which size survives: anything between the smallest and the largest since the last sync. */
  sizeBytes(sizes: readonly number[], path: string): number;
}

/** Which bytes survive, regardless of names. */
type LeftBytes = Omit<CrashChoice, "keepsName">;
type KeepsName = CrashChoice["keepsName"];

const first = (sizes: readonly number[]) => sizes[0]!;
const last = (sizes: readonly number[]) => sizes.at(-1)!;

function between(sizes: readonly number[], part: number): number {
  return first(sizes) + Math.floor((last(sizes) - first(sizes)) * part);
}

/** The newest content of some sectors, and the newest size. */
function sectors(isLeft: (sector: UnsyncedSector) => boolean): LeftBytes {
  return {
    version: (sector) => isLeft(sector) ? sector.versions - 1 : 0,
    sizeBytes: last,
  };
}

/** The newest content up to a size. */
function upTo(sizeBytes: (sizes: readonly number[]) => number): LeftBytes {
  return { version: ({ versions }) => versions - 1, sizeBytes };
}

const NO_BYTES: LeftBytes = { version: () => 0, sizeBytes: first };
const ALL_BYTES: LeftBytes = upTo(last);

/** Named patterns of unsynced bytes that survive. */
const TORN: Record<string, LeftBytes> = {
  "no bytes": NO_BYTES,
  "all bytes": ALL_BYTES,
  "the size alone": sectors(() => false),
  "the first sector": sectors(({ place }) => place === 0),
  "all but the first sector": sectors(({ place }) => place > 0),
  "the last sector": sectors(({ place, count }) => place === count - 1),
  "all but the last sector": sectors(({ place, count }) => place < count - 1),
  "every other sector": sectors(({ place }) => place % 2 === 0),
  "the sectors between": sectors(({ place }) => place % 2 === 1),
  "half of the length": upTo((sizes) => between(sizes, 0.5)),
  "all but a byte": upTo((sizes) => between(sizes, 0.999_999)),
  "one byte": upTo((sizes) => Math.min(first(sizes) + 1, last(sizes))),
};

export const TORN_SHAPES: readonly string[] = Object.keys(TORN);

const ALL_NAMES: KeepsName = () => true;
const SYNCED_NAMES: KeepsName = () => false;

/** A crash that tears bytes in this shape; all names survive by default. */
export function torn(shape: string, keepsName: KeepsName = ALL_NAMES): CrashChoice {
  return { ...TORN[shape]!, keepsName };
}

/** Only synced data, the least that a crash can leave. */
export const SYNCED_ONLY: CrashChoice = { ...NO_BYTES, keepsName: SYNCED_NAMES };
/** Everything, as when only the process ends. */
export const ALL_DONE: CrashChoice = { ...ALL_BYTES, keepsName: ALL_NAMES };
/** All names, but only synced bytes. */
export const NAMES_ONLY: CrashChoice = { ...NO_BYTES, keepsName: ALL_NAMES };

/** All names, and the first bytes of each file's growth. */
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
  "with what was synced": SYNCED_ONLY,
  "with all names": NAMES_ONLY,
  "with all names and half of each file": torn("half of the length"),
  "with all that was done": ALL_DONE,
};

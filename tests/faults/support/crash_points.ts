/**
 * The states that a crash can leave. At each operation in a run, several subsets of the unsynced
 * changes survive. States with identical bytes are merged.
 */
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { type Random, seededRandom } from "../../../tools/support/random.ts";
import {
  anyOf,
  type CrashChoice,
  keptBytes,
  torn,
  TORN_SHAPES,
} from "../../support/simulated_crash.ts";
import {
  changesDisk,
  type Operation,
  type SimulatedDisk,
  type Tree,
} from "../../support/simulated_disk.ts";

/** A named choice of the unsynced changes that survive. */
interface NamedChoice {
  name: string;
  choice: CrashChoice;
}

/** Which states are tested at each operation, and how many. */
export interface Variety {
  /** Names of the patterns of surviving bytes. */
  shapes: readonly string[];
  /** All subsets of up to this many sectors are also tested, at two file sizes. */
  allSectorsMax: number;
  /** All subsets of up to this many name changes are tested; beyond that, only a few. */
  allSubsetsMax: number;
  /** Appended bytes are also truncated at each multiple of this size. Null disables this. */
  cutEveryBytes: number | null;
  /** Number of additional random states. */
  randomStates: number;
}

/** All patterns of surviving bytes with all subsets of name changes. */
export const FULL_VARIETY: Variety = {
  shapes: TORN_SHAPES,
  allSectorsMax: 6,
  allSubsetsMax: 4,
  cutEveryBytes: 24,
  randomStates: 16,
};
/** Fewer states, for a test that takes seconds. */
export const SAMPLED_VARIETY: Variety = { ...FULL_VARIETY, cutEveryBytes: null, randomStates: 2 };
/** Even fewer states, for crashes during recovery. */
export const SMALL_VARIETY: Variety = {
  shapes: ["no bytes", "all bytes", "every other sector"],
  allSectorsMax: 0,
  allSubsetsMax: 2,
  cutEveryBytes: null,
  randomStates: 1,
};

/** A disk state that a crash can leave behind. */
export interface CrashState<Known> {
  tree: Tree;
  /** The clients' knowledge of the run at that time. */
  known: Known;
  /** A description of the crash. */
  label: string;
}

/**
 * Collects the states that crashes during a run can leave, each with the clients' knowledge at the
 * latest crash that can leave it.
 */
export class CrashPoints<Known> {
  /** States keyed by a hash of their bytes. */
  readonly states = new Map<string, CrashState<Known>>();
  /** Number of operations that were interrupted. */
  points = 0;
  /** Number of states before those with identical bytes were merged. */
  variants = 0;
  readonly #variety: Variety;
  readonly #random: Random;

  constructor(variety: Variety, seed: number) {
    this.#variety = variety;
    this.#random = seededRandom(seed);
  }

  /** Records a crash during an operation, once all other work is done or blocked on it. */
  async beforeOperation(disk: SimulatedDisk, operation: Operation, known: () => Known) {
    if (!changesDisk(operation)) return;
    // Lets other tasks learn everything they can while the operation is in progress.
    await setImmediate();
    this.take(disk, known(), `${operation.kind} ${operation.path}`);
  }

  /** Records a crash now. */
  take(disk: SimulatedDisk, known: Known, at: string): void {
    this.points += 1;
    for (const { name, choice } of this.#choices(disk)) {
      const tree = disk.treeAfter(choice);
      this.variants += 1;
      const label = `operation ${this.points} (${at}), left: ${name}`;
      this.states.set(treeHash(tree), { tree, known, label });
    }
  }

  #choices(disk: SimulatedDisk): NamedChoice[] {
    const { randomStates, allSubsetsMax } = this.#variety;
    const sectors = disk.unsyncedSectors;
    const names = nameSubsets(disk.unsyncedNames, allSubsetsMax);
    const choices: NamedChoice[] = names.flatMap((kept) =>
      this.#byteChoices(sectors).map(({ name, choice }) => ({
        name: `${name}, names ${describeSubset(kept)}`,
        choice: { ...choice, keepsName: (_change, place) => kept[place]! },
      }))
    );
    choices.push(...this.#cuts(disk.unsyncedBytes));
    if (sectors === null && names.length === 2 ** disk.unsyncedNames) return choices;
    for (let count = 0; count < randomStates; count++) {
      choices.push({ name: `random ${count}`, choice: anyOf(this.#random) });
    }
    return choices;
  }

  #cuts(unsyncedBytes: number): NamedChoice[] {
    const { cutEveryBytes } = this.#variety;
    if (cutEveryBytes === null) return [];
    return Array.from({ length: Math.floor(unsyncedBytes / cutEveryBytes) }, (_, place) => {
      const bytes = (place + 1) * cutEveryBytes;
      return { name: `all names, first ${bytes} appended bytes`, choice: keptBytes(bytes) };
    });
  }

  #byteChoices(sectors: number | null): NamedChoice[] {
    if (sectors === null) return [{ name: "all bytes", choice: torn("all bytes") }];
    return [
      ...this.#variety.shapes.map((shape) => ({ name: shape, choice: torn(shape) })),
      ...sectorSubsets(sectors, this.#variety.allSectorsMax),
    ];
  }
}

function describeSubset(kept: readonly boolean[]): string {
  return kept.map((isKept) => isKept ? "+" : "-").join("") || "none changed";
}

/** All subsets of `count` sectors, at full and half file size. Empty if `count` is too large. */
function sectorSubsets(count: number, countMax: number): NamedChoice[] {
  if (count > countMax) return [];
  return Array.from({ length: 2 ** count }, (_, bits) => bits).flatMap((bits) =>
    ["all bytes", "half the length"].map((size) => ({
      name: `sectors ${describeSubset(bitsOf(bits, count))}, ${size}`,
      choice: {
        ...torn(size),
        version: ({ place, versions }) => (bits >> place) % 2 === 1 ? versions - 1 : 0,
      },
    }))
  );
}

function bitsOf(bits: number, count: number): boolean[] {
  return Array.from({ length: count }, (_, place) => (bits >> place) % 2 === 1);
}

/**
 * Subsets of name changes to keep. Above the limit: none, each one, all but one (for each one), and
 * all.
 */
function nameSubsets(count: number, allSubsetsMax: number): boolean[][] {
  if (count <= allSubsetsMax) {
    return Array.from({ length: 2 ** count }, (_, bits) => bitsOf(bits, count));
  }
  const places = Array.from({ length: count }, (_, place) => place);
  return [
    places.map(() => false),
    places.map(() => true),
    ...places.map((missing) => places.map((place) => place !== missing)),
    ...places.map((only) => places.map((place) => place === only)),
  ];
}

/** Hashes by buffer. Buffers never change, and most files are the same in most states. */
const hashes = new WeakMap<Uint8Array, string>();

/** A hash of all names and bytes in a directory. */
export function treeHash(tree: Tree): string {
  const hash = createHash("sha1");
  for (const path of [...tree.keys()].sort()) {
    const bytes = tree.get(path)!;
    hash.update(`${path} ${bytes === null ? "folder" : hashOf(bytes)}\n`);
  }
  return hash.digest("base64");
}

function hashOf(bytes: Uint8Array): string {
  let hash = hashes.get(bytes);
  if (hash === undefined) {
    hash = createHash("sha1").update(bytes).digest("base64");
    hashes.set(bytes, hash);
  }
  return hash;
}

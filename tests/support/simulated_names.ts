/**
 * The names on a simulated disk: the current ones, the durable ones, and the changes in between, in
 * order. `simulated_disk.ts` describes the model.
 */
import type { NameChange } from "./simulated_crash.ts";

/** A name change, and its result at each path: a file, a directory (null) or no entry. */
interface MadeChange<File> extends NameChange {
  entries: readonly (File | null | undefined)[];
}

type Entries<File> = Map<string, File | null>;

export class SimulatedNames<File> {
  readonly #live: Entries<File>;
  readonly #durable: Entries<File>;
  #unsynced: MadeChange<File>[] = [];

  /** @param entries initial names, all durable. */
  constructor(entries: Iterable<readonly [string, File | null]>) {
    this.#live = new Map(entries);
    this.#durable = new Map(this.#live);
  }

  /** The current names, in no particular order. */
  get entries(): ReadonlyMap<string, File | null> {
    return this.#live;
  }

  /** The number of unsynced changes. */
  get unsyncedCount(): number {
    return this.#unsynced.length;
  }

  /** Creates a file or, for null, a directory. */
  create(path: string, entry: File | null): void {
    this.#change({ paths: [path], entries: [entry] });
  }

  rename(from: string, to: string): void {
    this.#change({ paths: [from, to], entries: [undefined, this.#live.get(from)] });
  }

  remove(path: string): void {
    this.#change({ paths: [path], entries: [undefined] });
  }

  /** Makes the changes in a directory durable, along with the changes on which they depend. */
  sync(folder: string): void {
    const duePaths = new Set<string>();
    const due = new Set<MadeChange<File>>();
    for (const change of this.#unsynced.toReversed()) {
      const isDue = change.paths.some((path) => folderOf(path) === folder || duePaths.has(path));
      if (!isDue) continue;
      due.add(change);
      for (const path of change.paths) duePaths.add(path);
    }
    for (const change of this.#unsynced) if (due.has(change)) apply(this.#durable, change);
    this.#unsynced = this.#unsynced.filter((change) => !due.has(change));
  }

  /** The names after a crash. */
  afterCrash(keeps: (change: NameChange, place: number) => boolean): Entries<File> {
    const left = new Map(this.#durable);
    const lostPaths = new Set<string>();
    for (const [place, change] of this.#unsynced.entries()) {
      const dependsOnLost = change.paths.some((path) =>
        lostPaths.has(path) || lostPaths.has(folderOf(path))
      );
      if (dependsOnLost || !keeps(change, place)) {
        for (const path of change.paths) lostPaths.add(path);
      } else {
        apply(left, change);
      }
    }
    for (const path of left.keys()) {
      const folder = folderOf(path);
      if (folder !== "." && !left.has(folder)) left.delete(path);
    }
    return left;
  }

  #change(change: MadeChange<File>): void {
    this.#unsynced.push(change);
    apply(this.#live, change);
  }
}

function apply<File>(entries: Entries<File>, change: MadeChange<File>): void {
  change.paths.forEach((path, place) => {
    const entry = change.entries[place];
    if (entry === undefined) entries.delete(path);
    else entries.set(path, entry);
  });
}

/** The parent directory of a path. */
export function folderOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : path.slice(0, slash);
}

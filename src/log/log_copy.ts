/**
 * Copies a log beside a writer that appends, rotates and seals meanwhile, without locking or
 * changing anything of it. The copy is a log that ends at a commit which was durable in the
 * original. docs/durability.md lists the races, and why each leaves a valid copy. Indexes are not
 * copied, since the next writer makes them from the segments.
 */
import { assert } from "../assert.ts";
import { sumOf } from "../sum.ts";
import { readManifest, type SegmentEntry, writeManifest } from "./segment/manifest.ts";
import { CorruptLogError } from "./storage/errors.ts";
import { PENDING_FOLDER, SEGMENTS_FOLDER, TAIL_FILE } from "./storage/file_names.ts";
import { hashFile, type Storage, type StorageFile } from "./storage/storage.ts";
import { verifyCommits } from "./verify/commit_file_verifier.ts";
import { HistoryCheck } from "./wal/history_check.ts";
import {
  closeFiles,
  findUnlisted,
  type Inventory,
  type ListedFile,
  takeInventory,
} from "./verify/inventory.ts";
import { readToEnd } from "./wal/remnant.ts";

/**
 * What is known of the last commit in the tail. `through` is the last event that the service shows,
 * and so is durable. If nothing serves the log, the tail can be synced. If a service does not
 * answer, the last commit may be in progress.
 */
export type Durability = { through: string | null } | "not served" | "unknown";

export interface CopyOptions {
  /** Called after the end of the tail was determined. */
  durability: () => Promise<Durability>;
  /** Puts a segment's file from an earlier copy in place; returns false if there is none. */
  link: (path: string) => Promise<boolean>;
  report: (line: string) => void;
  /** Called after each segment, with events. */
  onProgress: (copied: number, total: number) => void;
  /** Called between chunks. May throw to stop. */
  betweenChunks: () => void;
}

export interface CopiedLog {
  /** The last event in the copy; null if there is none. */
  frontier: string | null;
  /** Chain head after it, 64 lowercase hex digits. */
  head: string;
  events: number;
  segments: number;
  /** Segments that an earlier copy had. */
  linked: number;
  /** Size of what was copied rather than linked. */
  bytes: number;
}

/**
 * Copies the log in `from` to `into`, an empty directory, and makes the copy durable.
 * @throws {CorruptLogError} if the log is damaged.
 */
export async function copyLog(
  from: Storage,
  into: Storage,
  options: CopyOptions,
): Promise<CopiedLog> {
  return await new LogCopier(from, into, options).run();
}

/**
 * A copy is synced in parts of this size, since appends to the same disk wait for each. A multiple
 * of what `hashFile()` reads at once.
 */
const SYNC_BYTES = 4 * 1024 * 1024;

class LogCopier {
  readonly #from: Storage;
  readonly #into: Storage;
  readonly #options: CopyOptions;
  readonly #copied = new Set<string>();
  #linked = 0;
  #bytes = 0;

  constructor(from: Storage, into: Storage, options: CopyOptions) {
    this.#from = from;
    this.#into = into;
    this.#options = options;
  }

  async run(): Promise<CopiedLog> {
    const manifest = await readManifest(this.#from, "read");
    if (manifest !== null) {
      for (const folder of [PENDING_FOLDER, SEGMENTS_FOLDER]) await this.#into.makeFolder(folder);
      // This may take long. The inventory keeps files open, so it is taken afterwards.
      await this.#copySegments(manifest.segments);
    }
    const inventory = await takeInventory(this.#from);
    try {
      // If a first writer has started meanwhile, the copy is the empty log from before.
      if (manifest === null) return this.#result([], new HistoryCheck({ chain: false }));
      await this.#copySegments(inventory.manifest.segments);
      const history = await this.#copyUnsealed(inventory);
      await writeManifest(this.#into, inventory.manifest);
      for (const folder of [PENDING_FOLDER, SEGMENTS_FOLDER, "."]) {
        await this.#into.syncFolder(folder);
      }
      return this.#result(inventory.manifest.segments, history);
    } finally {
      await this.#into.closeFolders();
      await closeFiles(inventory);
    }
  }

  #result(segments: readonly SegmentEntry[], history: HistoryCheck): CopiedLog {
    assert(history.head !== null, "the head is known at the end of a commit");
    return {
      frontier: history.lastEventId,
      head: history.head,
      events: sumOf(segments, ({ events }) => events) + history.eventsChecked,
      segments: segments.length,
      linked: this.#linked,
      bytes: this.#bytes,
    };
  }

  async #copySegments(segments: readonly SegmentEntry[]): Promise<void> {
    const total = sumOf(segments, ({ events }) => events);
    let done = 0;
    for (const entry of segments) {
      if (!this.#copied.has(entry.path)) await this.#copySegment(entry);
      this.#copied.add(entry.path);
      this.#options.onProgress(done += entry.events, total);
    }
  }

  async #copySegment(entry: SegmentEntry): Promise<void> {
    const { path, sha256, bytes } = entry;
    if (await this.#options.link(path)) {
      if (await this.#isIntact(entry)) {
        this.#linked += 1;
        return;
      }
      this.#options.report(`${path}: damaged in the last copy, copied again`);
      await this.#into.remove(path);
    }
    const file = await this.#from.open(path, "read");
    try {
      if (await this.#copyFile(file, path, bytes) === sha256) return;
      throw new CorruptLogError(`${path}: differs from its SHA-256 in the manifest`);
    } finally {
      await file.close();
    }
  }

  /** Whether a file that was put in place is the segment. It may be anything, such as a symlink. */
  async #isIntact({ path, sha256, bytes }: SegmentEntry): Promise<boolean> {
    const file = await this.#into.open(path, "read").catch(() => null);
    if (file === null) return false;
    try {
      return await file.size() === bytes && await this.#readThrough(file, bytes) === sha256;
    } finally {
      await file.close();
    }
  }

  /** Copies the files that are not sealed, and verifies the copies. */
  async #copyUnsealed(inventory: Inventory): Promise<HistoryCheck> {
    const { manifest, pending, tail } = inventory;
    const last = manifest.segments.at(-1);
    const history = new HistoryCheck({
      chain: false,
      ...(last && { previousHead: last.head, lastEventId: last.last_event_id }),
    });
    for (const { path, file, sizeBytes } of pending) {
      await this.#copyFile(file, path, sizeBytes, history);
    }
    if (inventory.lacksTail) throw new CorruptLogError(`${TAIL_FILE}: is missing`);
    const sizeBytes = tail === null ? 0 : await this.#durableEnd(tail);
    await this.#copyFile(tail?.file ?? null, TAIL_FILE, sizeBytes, history);
    const failure = findUnlisted(inventory, history);
    if (failure !== null) throw failure;
    return history;
  }

  /** Returns the end of the last commit in the tail that is known to be durable. */
  async #durableEnd({ file, sizeBytes }: ListedFile): Promise<number> {
    const known = await this.#options.durability();
    // What was read before a sync is durable after it.
    const isSynced = known === "not served" && await file.sync().then(() => true, () => false);
    const through = typeof known === "object" ? known.through ?? "" : "";
    let [durableEnd, lastEventId] = [0, ""];
    const { endBytes, fault, corruption } = await readToEnd(file, sizeBytes, (next, start) => {
      lastEventId = next.commit.batches.at(-1)?.last_event_id ?? lastEventId;
      // This commit was written only after the one before it had been synced.
      durableEnd = isSynced || lastEventId <= through ? next.endBytes : start;
    });
    if (corruption !== null) {
      throw new CorruptLogError(`${TAIL_FILE}: corrupt at byte ${endBytes}: ${fault}`);
    }
    if (typeof known !== "object" && !isSynced && durableEnd < endBytes) {
      const why = "since the service does not answer whether it is durable";
      this.#options.report(`${TAIL_FILE}: left out its last commit, ${why}`);
    }
    return durableEnd;
  }

  /**
   * Copies and syncs [0, sizeBytes) of a file. @returns the SHA-256.
   * @param history verifies the copy of a tail or pending file.
   */
  async #copyFile(
    file: StorageFile | null,
    path: string,
    sizeBytes: number,
    history?: HistoryCheck,
  ): Promise<string> {
    const copy = await this.#into.open(path, "create");
    try {
      const sha256 = file && await this.#readThrough(file, sizeBytes, copy);
      await copy.sync();
      this.#bytes += sizeBytes;
      if (history !== undefined && await verifyCommits({ path, file: copy, sizeBytes }, history)) {
        throw new CorruptLogError(`${path}: its bytes changed while they were copied`);
      }
      return sha256 ?? "";
    } finally {
      await copy.close();
    }
  }

  /** Reads [0, sizeBytes) of a file, and writes it to `into`. @returns the SHA-256. */
  async #readThrough(file: StorageFile, sizeBytes: number, into?: StorageFile): Promise<string> {
    return await hashFile(file, sizeBytes, async (chunk, offset) => {
      await into?.write(chunk, offset);
      if ((offset + chunk.length) % SYNC_BYTES === 0) await into?.sync();
      this.#options.betweenChunks();
    });
  }
}

/**
 * An in-memory disk behind the log's storage interface (`src/log/storage/storage.ts`) that keeps
 * written and durable data apart. Every call is recorded, and a hook can delay it or make it fail.
 *
 * The model is as harsh as the assumptions in docs/format.md allow. After a crash:
 *
 * - A sector of 512 bytes has its content as of the last sync, or any later content, independently
 *   of other sectors. A sector is never torn, and sectors that were not written are unaffected.
 * - The size of a file is anything between the smallest and the largest since the last sync,
 *   independently of its bytes. Bytes that did not reach the disk read as zeros.
 * - A sync of a file makes its bytes and size durable, not its name. A sync of a directory makes
 *   the names created, renamed and removed in it durable, but not the bytes of the files.
 * - Any subset of the unsynced name changes survives, except that a rename is atomic, even between
 *   directories, and no change survives without the earlier ones to its path. A directory whose own
 *   name is lost loses its contents, too.
 * - A failed sync leaves its pages clean, as in Linux: each sector may or may not be on the disk,
 *   and no later sync writes it unless it is written again. Readers still see the new bytes
 *   (`shown`, as on ext4 and XFS) or the old ones (`dropped`, as on Btrfs). A failed sync of a
 *   directory changes nothing, and a later one can make its names durable: journaling file systems
 *   either retry or accept no further changes.
 *
 * While the machine runs, later processes see all changes.
 */
import { Buffer } from "node:buffer";
import type { CallMode, OpenMode, Storage, StorageFile } from "../../src/log/storage/storage.ts";
import { type CrashChoice, SYNCED_ONLY } from "./simulated_crash.ts";
import { type FailedPages, SimulatedFile } from "./simulated_file.ts";
import { folderOf, SimulatedNames } from "./simulated_names.ts";

export type OperationKind =
  | "open"
  | "read"
  | "write"
  | "sync"
  | "truncate"
  | "size"
  | "close"
  | "list"
  | "rename"
  | "remove"
  | "makeFolder"
  | "syncFolder";

/** A call to the storage interface. */
export interface Operation {
  kind: OperationKind;
  path: string;
  /** Only for `open`. */
  mode?: OpenMode;
  /** The offset of a read or write, or the size after a truncate. */
  position?: number;
  /** Only for `read` and `write`. */
  sizeBytes?: number;
  /** For a read, write or sync. A blocking read yields to the event loop only if the hook does. */
  callMode?: CallMode | undefined;
}

/** The failure of an operation. */
export interface Fault {
  errno: string;
  /** Number of bytes that a write stores before it fails. */
  writtenBytes?: number;
  /** The contents that readers see after a failed sync; default: `shown`. */
  pages?: FailedPages;
}

/** Called before an operation takes effect, and may delay it. @returns a fault, or null. */
export type OperationHook = (operation: Operation) => Fault | null | Promise<Fault | null>;

/** Every path below a directory, with the bytes of a file or null for a directory. */
export type Tree = Map<string, Uint8Array | null>;

const WITHOUT_EFFECT: ReadonlySet<OperationKind> = new Set(["read", "size", "close", "list"]);

/** Whether an operation changes anything. */
export function changesDisk({ kind, mode }: Operation): boolean {
  return !WITHOUT_EFFECT.has(kind) && (kind !== "open" || mode === "create");
}

export class SimulatedDisk implements Storage {
  hook: OperationHook | null = null;
  /** All calls so far, including failed ones. */
  readonly operations: Operation[] = [];
  /** The number of open files. */
  openFiles = 0;
  readonly #names: SimulatedNames<SimulatedFile>;
  /** Inode numbers. */
  readonly #numbers = new WeakMap<SimulatedFile, number>();
  #files = 0;

  /**
   * Creates a disk with the contents of `tree`, all durable, and any missing parent directories.
   * @param tree never modified.
   */
  constructor(tree: Tree = new Map()) {
    const folders = [...tree.keys()].map(folderOf).filter((folder) => folder !== ".");
    this.#names = new SimulatedNames([
      ...folders.map((folder) => [folder, null] as const),
      ...[...tree].map(([path, bytes]) => [path, bytes && new SimulatedFile(bytes)] as const),
    ]);
  }

  /** A copy of the current contents. */
  tree(): Tree {
    return new Map([...this.#names.entries].map(([path, file]) => [path, file && file.bytes()]));
  }

  /** The current bytes of a file. */
  contents(path: string): Buffer {
    return this.#file(path).bytes();
  }

  /** Flips a bit in a file, as a failing disk does. Bit 0 is the lowest of byte 0. */
  flipBit(path: string, bit: number): void {
    this.#file(path).flipBit(bit);
  }

  /** Whether a crash changes nothing. */
  get isDurable(): boolean {
    return this.unsyncedNames === 0 && this.#allFiles().every((file) => file.isDurable);
  }

  /** Number of unsynced name changes. */
  get unsyncedNames(): number {
    return this.#names.unsyncedCount;
  }

  /** The maximum number of unsynced sectors per file; null if a crash changes no file. */
  get unsyncedSectors(): number | null {
    const counts = this.#allFiles().map((file) => file.unsyncedSectors);
    const unsynced = counts.filter((count) => count !== null);
    return unsynced.length === 0 ? null : Math.max(...unsynced);
  }

  /** The maximum amount by which a crash may change the size of a file. */
  get unsyncedBytes(): number {
    return Math.max(0, ...this.#allFiles().map((file) => file.unsyncedBytes));
  }

  /** The disk as it is after a crash at this moment. */
  crash(choice: CrashChoice = SYNCED_ONLY): SimulatedDisk {
    return new SimulatedDisk(this.treeAfter(choice));
  }

  /** The tree after a crash at this moment. Callers must not modify its bytes. */
  treeAfter(choice: CrashChoice): Tree {
    const names = this.#names.afterCrash((change, place) => choice.keepsName(change, place));
    return new Map([...names].map(([path, file]) => [path, file && file.afterCrash(choice)]));
  }

  async open(path: string, mode: OpenMode): Promise<StorageFile> {
    await this.enter({ kind: "open", path, mode });
    if (mode === "create") {
      if (this.#names.entries.has(path)) throw errnoError("EEXIST", path);
      this.#assertFolder(folderOf(path));
      this.#names.create(path, new SimulatedFile());
    }
    const file = this.#file(path);
    this.openFiles += 1;
    return new OpenSimulatedFile(this, path, file, mode);
  }

  async list(folder: string): Promise<string[] | null> {
    await this.enter({ kind: "list", path: folder });
    if (folder !== "." && !this.#names.entries.has(folder)) return null;
    const inFolder = [...this.#names.entries.keys()].filter((path) => folderOf(path) === folder);
    return inFolder.map((path) => path.slice(path.lastIndexOf("/") + 1)).sort();
  }

  async rename(from: string, to: string): Promise<void> {
    await this.enter({ kind: "rename", path: from });
    this.#file(from);
    this.#assertFolder(folderOf(to));
    this.#names.rename(from, to);
  }

  async remove(path: string): Promise<void> {
    await this.enter({ kind: "remove", path });
    this.#file(path);
    this.#names.remove(path);
  }

  async makeFolder(path: string): Promise<void> {
    await this.enter({ kind: "makeFolder", path });
    if (this.#names.entries.has(path)) throw errnoError("EEXIST", path);
    this.#names.create(path, null);
  }

  async syncFolder(folder: string): Promise<void> {
    await this.enter({ kind: "syncFolder", path: folder });
    this.#assertFolder(folder);
    this.#names.sync(folder);
  }

  async closeFolders(): Promise<void> {}

  /** Not recorded, since it neither fails nor changes anything. */
  identity(path: string): Promise<string> {
    const file = this.#names.entries.get(path);
    if (file === undefined) return Promise.resolve("nothing");
    if (file === null) return Promise.resolve(`directory ${path}`);
    const number = this.#numbers.get(file) ?? ++this.#files;
    this.#numbers.set(file, number);
    return Promise.resolve(`file ${number}`);
  }

  /** Records an operation and calls the hook. */
  async enter(operation: Operation): Promise<void> {
    const fault = await this.admit(operation);
    if (fault !== null) throw errnoError(fault.errno, operation.path);
  }

  /** Like `enter`, for an operation that may be partly done before it fails. */
  async admit(operation: Operation): Promise<Fault | null> {
    this.operations.push(operation);
    return await this.hook?.(operation) ?? null;
  }

  #allFiles(): SimulatedFile[] {
    return [...this.#names.entries.values()].filter((file) => file !== null);
  }

  #file(path: string): SimulatedFile {
    const file = this.#names.entries.get(path);
    if (file === undefined) throw errnoError("ENOENT", path);
    if (file === null) throw errnoError("EISDIR", path);
    return file;
  }

  #assertFolder(folder: string): void {
    if (folder !== "." && !this.#names.entries.has(folder)) throw errnoError("ENOENT", folder);
  }
}

class OpenSimulatedFile implements StorageFile {
  readonly #disk: SimulatedDisk;
  readonly #path: string;
  readonly #file: SimulatedFile;
  readonly #mode: OpenMode;
  readonly #reads = new Set<Promise<void>>();
  #isOpen = true;

  constructor(disk: SimulatedDisk, path: string, file: SimulatedFile, mode: OpenMode) {
    this.#disk = disk;
    this.#path = path;
    this.#file = file;
    this.#mode = mode;
  }

  async read(into: Uint8Array, position: number, callMode?: CallMode): Promise<number> {
    const entered = this.#enter({
      kind: "read",
      path: this.#path,
      position,
      sizeBytes: into.length,
      callMode,
    });
    this.#reads.add(entered);
    try {
      await entered;
      return this.#file.read(into, position);
    } finally {
      this.#reads.delete(entered);
    }
  }

  async write(bytes: Uint8Array, position: number, callMode?: CallMode): Promise<void> {
    this.#assertWritable();
    const operation = { kind: "write" as const, path: this.#path, position, callMode };
    const fault = await this.#disk.admit({ ...operation, sizeBytes: bytes.length });
    const writtenBytes = fault === null ? bytes.length : fault.writtenBytes ?? 0;
    if (writtenBytes > 0) {
      this.#file.change({ position, bytes: Buffer.from(bytes.subarray(0, writtenBytes)) });
    }
    if (fault !== null) throw errnoError(fault.errno, this.#path);
  }

  async sync(callMode?: CallMode): Promise<void> {
    this.#assertOpen();
    const changes = this.#file.changesSoFar;
    const fault = await this.#disk.admit({ kind: "sync", path: this.#path, callMode });
    if (fault === null) {
      this.#file.sync(changes);
    } else {
      this.#file.failSync(changes, fault.pages ?? "shown");
      throw errnoError(fault.errno, this.#path);
    }
  }

  async truncate(sizeBytes: number): Promise<void> {
    this.#assertWritable();
    await this.#enter({ kind: "truncate", path: this.#path, position: sizeBytes });
    this.#file.change({ position: sizeBytes, bytes: null });
  }

  async size(): Promise<number> {
    await this.#enter({ kind: "size", path: this.#path });
    return this.#file.sizeBytes;
  }

  async close(): Promise<void> {
    this.#assertOpen();
    this.#isOpen = false;
    await Promise.allSettled(this.#reads);
    await this.#disk.enter({ kind: "close", path: this.#path });
    this.#disk.openFiles -= 1;
  }

  async #enter(operation: Operation): Promise<void> {
    this.#assertOpen();
    await this.#disk.enter(operation);
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw errnoError("EBADF", this.#path);
  }

  #assertWritable(): void {
    if (!this.#isOpen || this.#mode === "read") throw errnoError("EBADF", this.#path);
  }
}

/** An error with the code and message format of a system error. */
function errnoError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: injected, '${path}'`), { code });
}

/** An open file with these bytes, outside any directory. */
export function simulatedFile(bytes: string | Uint8Array): Promise<StorageFile> {
  return new SimulatedDisk(new Map([["file", Buffer.from(bytes as string)]])).open("file", "write");
}

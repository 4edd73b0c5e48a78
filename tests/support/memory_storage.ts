/**
 * A log folder in memory, which knows what of it is durable. Every call is recorded, and a hook can
 * delay it or make it fail.
 *
 * Simple where it can be: a rename counts as durable once the folder it leads to is synced.
 */
import { Buffer } from "node:buffer";
import type { OpenMode, Storage, StorageFile } from "../../src/log/storage.ts";
import { type Change, MemoryFile } from "./memory_file.ts";

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

/** One call of the storage seam. */
export interface Operation {
  kind: OperationKind;
  path: string;
  /** Of a read, write or truncate: where it starts. */
  position?: number;
  /** Of a read or write. */
  sizeBytes?: number;
}

/** How an operation fails. */
export interface Fault {
  errno: string;
  /** What a write puts into the file before it fails. */
  writtenBytes?: number;
}

/** Asked before each operation; may delay it, and says how it fails, or null when it does not. */
export type OperationHook = (operation: Operation) => Fault | null | Promise<Fault | null>;

/** Every path of a folder with the bytes of the file; null for a folder. */
export type Tree = Map<string, Uint8Array | null>;

export interface CrashOptions {
  /**
   * How many bytes of an unsynced write survive; for a truncate, whether it does. None by default.
   */
  keptBytes?: (change: Change) => number;
  /** Whether names survive without a sync of their folder. Not by default. */
  keepNames?: boolean;
}

export class MemoryStorage implements Storage {
  hook: OperationHook | null = null;
  /** All calls so far, those that failed too. */
  readonly operations: Operation[] = [];
  /** Files that are open now. */
  openFiles = 0;
  #live = new Map<string, MemoryFile | null>();
  #durable = new Map<string, MemoryFile | null>();

  /** A folder that holds `tree`, all of it durable. */
  constructor(tree: Tree = new Map()) {
    for (const [path, bytes] of tree) {
      this.#live.set(path, bytes === null ? null : MemoryFile.of(bytes));
    }
    this.#durable = new Map(this.#live);
  }

  /** A copy of all that is there now. */
  tree(): Tree {
    return new Map([...this.#live].map(([path, file]) => [path, file && file.bytes()]));
  }

  /** The bytes of a file as they are now. */
  contents(path: string): Buffer {
    return this.#file(path).bytes();
  }

  /** What a machine that stops now finds when it starts again. */
  crash(options: CrashOptions = {}): MemoryStorage {
    const { keptBytes = () => 0, keepNames = false } = options;
    const names = keepNames ? this.#live : this.#durable;
    return new MemoryStorage(
      new Map([...names].map(([path, file]) => [path, file && file.afterCrash(keptBytes)])),
    );
  }

  async open(path: string, mode: OpenMode): Promise<StorageFile> {
    await this.enter({ kind: "open", path });
    if (mode === "create") {
      if (this.#live.has(path)) throw errnoError("EEXIST", path);
      this.#live.set(path, new MemoryFile());
    }
    const file = this.#file(path);
    this.openFiles += 1;
    return new OpenMemoryFile(this, path, file, mode);
  }

  async list(folder: string): Promise<string[] | null> {
    await this.enter({ kind: "list", path: folder });
    if (folder !== "." && !this.#live.has(folder)) return null;
    const inFolder = [...this.#live.keys()].filter((path) => folderOf(path) === folder);
    return inFolder.map((path) => path.slice(path.lastIndexOf("/") + 1)).sort();
  }

  async rename(from: string, to: string): Promise<void> {
    await this.enter({ kind: "rename", path: from });
    const file = this.#file(from);
    this.#live.delete(from);
    this.#live.set(to, file);
  }

  async remove(path: string): Promise<void> {
    await this.enter({ kind: "remove", path });
    this.#file(path);
    this.#live.delete(path);
  }

  async makeFolder(path: string): Promise<void> {
    await this.enter({ kind: "makeFolder", path });
    if (this.#live.has(path)) throw errnoError("EEXIST", path);
    this.#live.set(path, null);
  }

  async syncFolder(folder: string): Promise<void> {
    await this.enter({ kind: "syncFolder", path: folder });
    for (const [path, file] of this.#live) {
      if (folderOf(path) === folder) this.#durable.set(path, file);
    }
    for (const [path, file] of this.#durable) {
      const isMoved = this.#live.get(path) !== file || !this.#live.has(path);
      const isElsewhere = [...this.#live].some(([other, live]) =>
        live === file && folderOf(other) === folder
      );
      if (isMoved && (folderOf(path) === folder || isElsewhere)) this.#durable.delete(path);
    }
  }

  /** Records an operation and lets the hook have its way. */
  async enter(operation: Operation): Promise<void> {
    const fault = await this.admit(operation);
    if (fault !== null) throw errnoError(fault.errno, operation.path);
  }

  /** As `enter`, for one that does part of its work before it fails. */
  async admit(operation: Operation): Promise<Fault | null> {
    this.operations.push(operation);
    return await this.hook?.(operation) ?? null;
  }

  #file(path: string): MemoryFile {
    const file = this.#live.get(path);
    if (file === undefined) throw errnoError("ENOENT", path);
    if (file === null) throw errnoError("EISDIR", path);
    return file;
  }
}

class OpenMemoryFile implements StorageFile {
  readonly #storage: MemoryStorage;
  readonly #path: string;
  readonly #file: MemoryFile;
  readonly #mode: OpenMode;
  #isOpen = true;

  constructor(storage: MemoryStorage, path: string, file: MemoryFile, mode: OpenMode) {
    this.#storage = storage;
    this.#path = path;
    this.#file = file;
    this.#mode = mode;
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    await this.#enter({ kind: "read", path: this.#path, position, sizeBytes: into.length });
    return this.#file.read(into, position);
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    this.#assertWritable();
    const operation = { kind: "write" as const, path: this.#path, position };
    const fault = await this.#storage.admit({ ...operation, sizeBytes: bytes.length });
    const writtenBytes = fault === null ? bytes.length : fault.writtenBytes ?? 0;
    if (writtenBytes > 0) {
      this.#file.change({ position, bytes: Buffer.from(bytes.subarray(0, writtenBytes)) });
    }
    if (fault !== null) throw errnoError(fault.errno, this.#path);
  }

  async sync(): Promise<void> {
    const changes = this.#file.changesSoFar;
    await this.#enter({ kind: "sync", path: this.#path });
    this.#file.markSynced(changes);
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
    await this.#enter({ kind: "close", path: this.#path });
    this.#isOpen = false;
    this.#storage.openFiles -= 1;
  }

  async #enter(operation: Operation): Promise<void> {
    if (!this.#isOpen) throw errnoError("EBADF", this.#path);
    await this.#storage.enter(operation);
  }

  #assertWritable(): void {
    if (!this.#isOpen || this.#mode === "read") throw errnoError("EBADF", this.#path);
  }
}

/** An error as the operating system's calls give it. */
export function errnoError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: injected, '${path}'`), { code });
}

function folderOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : path.slice(0, slash);
}

/** An open file with these bytes, without a folder around it. */
export function memoryFile(bytes: string | Uint8Array): Promise<StorageFile> {
  return new MemoryStorage(new Map([["file", Buffer.from(bytes as string)]])).open("file", "write");
}

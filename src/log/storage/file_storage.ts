/** Implements `Storage` on a real directory with `node:fs`. */
import fs from "node:fs";
import { join } from "node:path";
import { assert } from "../../assert.ts";
import type { Maybe } from "../../maybe.ts";
import {
  type CallMode,
  errorCode,
  isNotFound,
  type OpenMode,
  type Storage,
  type StorageFile,
} from "./storage.ts";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = fs.constants;

/** O_NONBLOCK keeps open(2) from blocking on a pipe; regular files ignore it. */
const OPEN_FLAGS: Record<OpenMode, number> = {
  read: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
  write: O_RDWR | O_NOFOLLOW | O_NONBLOCK,
  create: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
};

/** Maximum number of attempts to open a file that is being replaced. */
const OPEN_ATTEMPTS_MAX = 10;

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/** Returns storage in the directory `root`, which must exist. */
export function fileStorage(root: string): Storage {
  const at = (path: string) => join(root, path);
  /** Descriptors of synced directories. They stay open, so that a later sync needs no new one. */
  const folders = new Map<string, number>();
  return {
    open: (path, mode) => openFile(at(path), mode),
    list: (folder) => listFolder(at(folder)),
    rename: (from, to) => fs.promises.rename(at(from), at(to)),
    remove: (path) => fs.promises.unlink(at(path)),
    makeFolder: (path) => fs.promises.mkdir(at(path), { mode: FOLDER_MODE }).then(() => {}),
    async syncFolder(path) {
      const opened = folders.get(path);
      const fd = opened ?? await called<number>((done) => fs.open(at(path), O_DIRECTORY, done));
      folders.set(path, fd);
      await called((done) => fs.fsync(fd, done));
    },
    async closeFolders() {
      const opened = [...folders.values()];
      folders.clear();
      for (const fd of opened) await called((done) => fs.close(fd, done));
    },
    identity: (path) =>
      fs.promises.lstat(at(path), { bigint: true }).then(
        ({ dev, ino }) => `${dev}:${ino}`,
        (error) => errorCode(error),
      ),
  };
}

async function openFile(path: string, mode: OpenMode, attempt = 1): Promise<StorageFile> {
  let fd: number;
  try {
    fd = await called((done) => fs.open(path, OPEN_FLAGS[mode], FILE_MODE, done));
  } catch (error) {
    throw NOT_REGULAR_CODES.has(errorCode(error)) ? notRegularFile(path, error) : error;
  }
  try {
    // Detects symlinks that Deno, with restricted permissions, resolves despite O_NOFOLLOW.
    const named = fs.lstatSync(path);
    if (!named.isFile()) throw notRegularFile(path);
    if (isSameFile(named, fs.fstatSync(fd))) {
      return new OpenedFile(path, fd, mode === "read" ? fd : reopen(path, fd));
    }
    // A writer replaces its manifest at any time.
    if (attempt === OPEN_ATTEMPTS_MAX) throw replaced(path);
  } catch (error) {
    fs.closeSync(fd);
    throw error;
  }
  fs.closeSync(fd);
  return await openFile(path, mode, attempt + 1);
}

/** Opens the same file for reading. */
function reopen(path: string, fd: number): number {
  const readFd = fs.openSync(path, OPEN_FLAGS.read);
  if (isSameFile(fs.fstatSync(fd), fs.fstatSync(readFd))) return readFd;
  fs.closeSync(readFd);
  throw replaced(path);
}

function isSameFile(a: fs.Stats, b: fs.Stats): boolean {
  return a.ino === b.ino && a.dev === b.dev;
}

function replaced(path: string): Error {
  return new Error(`${path}: replaced while being opened; only the service may write to this log`);
}

/** Error codes from open(2) for a symlink, for a socket or device, and for a directory. */
const NOT_REGULAR_CODES = new Set(["ELOOP", "ENXIO", "EISDIR"]);

function notRegularFile(path: string, cause?: unknown): Error {
  const message = `${path}: not a regular file (symlinks are not followed); restore the file`;
  return new Error(message, { cause });
}

async function listFolder(path: string): Promise<string[] | null> {
  try {
    // Check here, because a directory is always listed before any other operation in it.
    const stat = await fs.promises.lstat(path);
    if (!stat.isDirectory()) {
      throw new Error(`${path}: not a directory (symlinks are not followed); restore it`);
    }
    return (await fs.promises.readdir(path)).sort();
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

/**
 * Uses callbacks instead of `fs.promises` file handles, which double the cost of small calls.
 *
 * Deno before 2.9 implements positional reads and writes in two steps, seek and transfer, so
 * concurrent calls on one descriptor could use each other's position. Therefore reads have their
 * own descriptor and are queued.
 */
class OpenedFile implements StorageFile {
  /** For errors. A new tail is opened under a temporary name. */
  readonly #path: string;
  readonly #fd: number;
  readonly #readFd: number;
  /** Settles when the last queued read does. */
  #reading: Promise<unknown> = Promise.resolve();
  #queuedReads = 0;
  #isWriting = false;
  /** Checked on each call, since a closed descriptor may be reused for another file. */
  #isClosed = false;

  /** @param readFd another descriptor for the same file, or `fd` if the file is read-only. */
  constructor(path: string, fd: number, readFd: number) {
    this.#path = path.replace(/\.tmp$/, "");
    this.#fd = fd;
    this.#readFd = readFd;
  }

  read(into: Uint8Array, position: number, mode?: CallMode): Maybe<number> {
    this.#assertOpen();
    const [fd, sizeBytes] = [this.#readFd, into.length];
    if (mode === "blocking" && this.#queuedReads === 0) {
      try {
        const readBytes = fs.readSync(fd, into, 0, sizeBytes, position);
        if (readBytes === sizeBytes) return readBytes;
        // The rest, if there is any, is read in the pool, as after a signal.
      } catch (error) {
        if (errorCode(error) !== "EINTR") throw named(this.#path, error);
      }
    }
    this.#queuedReads += 1;
    const read = this.#reading.then(() =>
      transferred(
        this.#path,
        sizeBytes,
        (at, done) => fs.read(fd, into, at, sizeBytes - at, position + at, done),
      )
    ).finally(() => this.#queuedReads -= 1);
    this.#reading = read.catch(() => {});
    return read;
  }

  async write(bytes: Uint8Array, position: number, mode?: CallMode): Promise<void> {
    this.#assertOpen();
    assert(!this.#isWriting, "only one write to a file may run at a time");
    this.#isWriting = true;
    const [fd, sizeBytes] = [this.#fd, bytes.length];
    try {
      const writtenBytes = await transferred(
        this.#path,
        sizeBytes,
        (at, done) =>
          mode === "blocking"
            ? done(null, fs.writeSync(fd, bytes, at, sizeBytes - at, position + at))
            : fs.write(fd, bytes, at, sizeBytes - at, position + at, done),
      );
      if (writtenBytes < sizeBytes) {
        throw new Error("write(2) wrote no bytes but returned no error");
      }
    } finally {
      this.#isWriting = false;
    }
  }

  sync(mode?: CallMode): Promise<void> {
    this.#assertOpen();
    return called((done) =>
      mode === "blocking" ? done(null, fs.fdatasyncSync(this.#fd)) : fs.fdatasync(this.#fd, done)
    );
  }

  truncate(sizeBytes: number): Promise<void> {
    this.#assertOpen();
    return called((done) => fs.ftruncate(this.#fd, sizeBytes, done));
  }

  async size(): Promise<number> {
    this.#assertOpen();
    return (await called<fs.Stats>((done) => fs.fstat(this.#fd, done))).size;
  }

  async close(): Promise<void> {
    this.#assertOpen();
    this.#isClosed = true;
    await this.#reading;
    try {
      if (this.#readFd !== this.#fd) await called((done) => fs.close(this.#readFd, done));
    } finally {
      await called((done) => fs.close(this.#fd, done));
    }
  }

  #assertOpen(): void {
    assert(!this.#isClosed, "a closed file must not be used");
  }
}

type Callback<Result> = (error: NodeJS.ErrnoException | null, result: Result) => void;

function called<Result = void>(call: (done: Callback<Result>) => void): Promise<Result> {
  return new Promise((resolve, reject) =>
    call((error, result) => error ? reject(error) : resolve(result))
  );
}

/**
 * Repeats a call until all bytes are transferred or it transfers none. Also repeats a call that a
 * signal interrupted before it transferred any; neither runtime does so for both reads and writes.
 * @param transfer transfers bytes starting at offset `at`, and returns how many.
 * @returns the number of bytes transferred.
 */
async function transferred(
  path: string,
  sizeBytes: number,
  transfer: (at: number, done: Callback<number>) => void,
): Promise<number> {
  let at = 0;
  while (at < sizeBytes) {
    try {
      const count = await called<number>((done) => transfer(at, done));
      if (count === 0) break;
      at += count;
    } catch (error) {
      if (errorCode(error) !== "EINTR") throw named(path, error);
    }
  }
  return at;
}

function named(path: string, error: unknown): unknown {
  (error as Error).message = `${path}: ${(error as Error).message}`;
  return error;
}

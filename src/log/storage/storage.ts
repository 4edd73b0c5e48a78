/**
 * The log's interface to the disk. All its I/O goes through these two interfaces, so that tests can
 * simulate a disk that loses or tears writes, fails or fills up.
 *
 * Paths are relative to the log directory and separated by `/`. Sizes and positions are in bytes.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { constants } from "node:os";
import type { Maybe } from "../../maybe.ts";
import { CorruptLogError, SegmentError } from "./errors.ts";

/** How a file is opened: for reading, for reading and writing, or as a new file. */
export type OpenMode = "read" | "write" | "create";

/**
 * Where a system call runs. The default is the thread pool. A blocking call runs on this thread,
 * which saves the round trip to the pool but blocks every client until the call returns.
 */
export type CallMode = "pooled" | "blocking";

export interface StorageFile {
  /**
   * Fills `into` from `position`; returns the byte count, which is short only at end of file. A
   * blocking read needs no promise, but is pooled if another read of the file is active.
   */
  read(into: Uint8Array, position: number, mode?: CallMode): Maybe<number>;
  /** Writes all of `bytes`. Writes must not overlap. After an error, any part may be written. */
  write(bytes: Uint8Array, position: number, mode?: CallMode): Promise<void>;
  /** fdatasync(2): earlier writes are durable once this resolves. */
  sync(mode?: CallMode): Promise<void>;
  truncate(sizeBytes: number): Promise<void>;
  size(): Promise<number>;
  /** Waits for active reads. The file must not be used afterwards. */
  close(): Promise<void>;
}

/** Read access to a file that another component opens and closes. */
export type FileReader = Pick<StorageFile, "read">;

export interface Storage {
  /** Never follows symlinks; throws if the path is not a regular file. */
  open(path: string, mode: OpenMode): Promise<StorageFile>;
  /** Returns the sorted names in a directory; null if it does not exist. */
  list(folder: string): Promise<string[] | null>;
  /** Replaces `to` atomically. */
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  makeFolder(path: string): Promise<void>;
  /** fsync(2) of a directory: the names in it are durable once this resolves. */
  syncFolder(path: string): Promise<void>;
  /** Closes directories that were kept open for later syncs. The storage remains usable. */
  closeFolders(): Promise<void>;
  /** Returns what tells the file or directory at a path, if there is one, from any other. */
  identity(path: string): Promise<string>;
}

const NO_ROOM_CODES = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Whether a write failed because the disk is full. */
export function isNoRoom(error: unknown): boolean {
  return NO_ROOM_CODES.has(errorCode(error));
}

/** Whether a call failed because a path does not exist. */
export function isNotFound(error: unknown): boolean {
  return errorCode(error) === "ENOENT";
}

/** The `code` for an error that libuv cannot name, such as EDQUOT. Blocking calls use UNKNOWN. */
const UNNAMED_CODE = /^(?:UNKNOWN|Unknown system error -\d+)$/;
/** End of the message in an error without a `code`. */
const TEXT_END = /\(os error (\d+)\)$/;

/**
 * Returns the errno name for a system error, like `ENOENT`; empty for other errors. Neither runtime
 * names all errors; the others are looked up by number.
 */
export function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return "";
  const { code, errno } = error as NodeJS.ErrnoException;
  if (code !== undefined && !UNNAMED_CODE.test(code)) return code;
  const number = errno === undefined ? Number(TEXT_END.exec(error.message)?.[1]) : -errno;
  return Object.entries(constants.errno).find(([, known]) => known === number)?.[0] ?? "";
}

export async function removeIfThere(storage: Storage, path: string): Promise<void> {
  await storage.remove(path).catch((error) => {
    if (!isNotFound(error)) throw error;
  });
}

/** Reads a small file in full. @throws {CorruptLogError} if it exceeds `limitBytes`. */
export async function readSmallFile(
  storage: Storage,
  path: string,
  limitBytes: number,
): Promise<Uint8Array> {
  const file = await storage.open(path, "read");
  try {
    const sizeBytes = await file.size();
    if (sizeBytes > limitBytes) {
      throw new CorruptLogError(`${path}: ${sizeBytes} bytes exceed the limit of ${limitBytes}`);
    }
    const bytes = new Uint8Array(sizeBytes);
    const readBytes = await file.read(bytes, 0);
    return bytes.subarray(0, readBytes);
  } finally {
    await file.close();
  }
}

/**
 * Replaces a file atomically. A crash leaves either the complete old or the complete new file.
 * Writes a temporary file, syncs it, renames it and syncs the directory.
 */
export async function replaceFile(
  storage: Storage,
  path: string,
  temporaryPath: string,
  bytes: Uint8Array,
): Promise<void> {
  const file = await storage.open(temporaryPath, "create");
  try {
    await file.write(bytes, 0);
    await file.sync();
  } finally {
    await file.close();
  }
  await storage.rename(temporaryPath, path);
  await storage.syncFolder(".");
}

/** Bytes [start, end) of a file. */
export interface FileRange {
  start: number;
  end: number;
}

/** Reads bytes [start, end) of a file. @throws {SegmentError} if the file ends before `end`. */
export async function readRange(file: FileReader, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(end - start);
  const readBytes = await file.read(bytes, start);
  if (readBytes === bytes.length) return bytes;
  throw new SegmentError(`the file ends at byte ${start + readBytes}, before byte ${end}`);
}

/** Bytes that `hashFile()` reads at once. */
const HASH_CHUNK_BYTES = 256 * 1024;

/**
 * Hashes the first `sizeBytes` of a file, or what there is of them.
 * @param use receives each chunk, which is valid until its promise resolves, and its offset.
 * @returns the SHA-256, 64 lowercase hex digits.
 */
export async function hashFile(
  file: FileReader,
  sizeBytes: number,
  use?: (chunk: Uint8Array, offset: number) => Promise<void>,
): Promise<string> {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafeSlow(Math.min(HASH_CHUNK_BYTES, sizeBytes));
  for (let offset = 0; offset < sizeBytes;) {
    const wanted = buffer.subarray(0, Math.min(buffer.length, sizeBytes - offset));
    const chunk = wanted.subarray(0, await file.read(wanted, offset));
    if (chunk.length === 0) break;
    hash.update(chunk);
    await use?.(chunk, offset);
    offset += chunk.length;
  }
  return hash.digest("hex");
}

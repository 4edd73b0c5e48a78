/** Storage for copies of sealed segments: a directory or an S3-compatible object store. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, open, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { operationalError, usageError } from "../../src/commands/exit.ts";
import { isNotFound } from "../../src/log/storage/storage.ts";
import { s3Store } from "./s3_store.ts";

/** A local file to copy, with its expected size and hash. */
export interface SourceFile {
  path: string;
  bytes: number;
  /** 64 lowercase hex digits. */
  sha256: string;
}

/** A file store. Names are relative paths with slashes; writes are atomic. */
export interface SegmentStore {
  /** Returns the size of a file in bytes, or null if it does not exist. */
  size(name: string): Promise<number | null>;
  /** @throws {Error} if the stored bytes do not match the hash. */
  put(name: string, source: SourceFile): Promise<void>;
  putSmall(name: string, bytes: Uint8Array): Promise<void>;
  /** Opens a file for reading. Returns null if it does not exist. */
  get(name: string): Promise<Readable | null>;
}

/** @param url A path, a `file:` URL or `s3://<bucket>[/<prefix>]`. */
export function openStore(url: string): SegmentStore {
  if (url.startsWith("s3:")) return s3Store(new URL(url));
  if (url.startsWith("file:")) return folderStore(fileURLToPath(url));
  if (/^[a-z0-9+]+:/i.test(url)) throw usageError(`${url}: only file: and s3: are supported`);
  return folderStore(url);
}

/** Reads a small file into memory. Returns null if it does not exist. */
export async function readStored(store: SegmentStore, name: string): Promise<Buffer | null> {
  const content = await store.get(name);
  return content === null ? null : Buffer.concat(await content.toArray());
}

/**
 * Copies a file, durably and atomically.
 * @throws {CommandError} if the size or hash is not the expected one; `path` is then not created.
 */
export async function copyVerified(
  content: Readable,
  path: string,
  { bytes, sha256 }: Omit<SourceFile, "path">,
): Promise<void> {
  const asidePath = `${path}.tmp`;
  const hash = createHash("sha256");
  let copied = 0;
  await pipeline(content, async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      copied += chunk.length;
      yield chunk;
    }
  }, createWriteStream(asidePath, { mode: 0o600 }));
  const found = hash.digest("hex");
  if (found !== sha256 || copied !== bytes) {
    throw operationalError(
      `${path}: copied ${copied} bytes with SHA-256 ${found}, expected ${bytes} with ${sha256}`,
    );
  }
  await publish(asidePath, path);
}

/** Syncs a file, renames it and syncs the directory. */
async function publish(asidePath: string, path: string): Promise<void> {
  await sync(asidePath);
  await rename(asidePath, path);
  await sync(dirname(path));
}

async function sync(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

function folderStore(folder: string): SegmentStore {
  const pathOf = async (name: string) => {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    return path;
  };
  return {
    size: (name) => orNull(async () => (await stat(join(folder, name))).size),
    async put(name, source) {
      await copyVerified(createReadStream(source.path), await pathOf(name), source);
    },
    async putSmall(name, bytes) {
      const path = await pathOf(name);
      await writeFile(`${path}.tmp`, bytes);
      await publish(`${path}.tmp`, path);
    },
    get: (name) => orNull(async () => (await open(join(folder, name), "r")).createReadStream()),
  };
}

/** Returns null if `work` fails because a file does not exist. */
export async function orNull<Result>(work: () => Promise<Result>): Promise<Result | null> {
  try {
    return await work();
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

/** Storage for copies of sealed segments: a directory or an S3-compatible object store. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { open, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { absolutePath } from "../../src/commands/deployment.ts";
import { operationalError, usageError } from "../../src/commands/exit.ts";
import { createFolder, sync } from "../../src/commands/init.ts";
import { MANIFEST_BYTES_MAX } from "../../src/limits.ts";
import { decodeManifest, type Manifest } from "../../src/log/segment/manifest.ts";
import { MANIFEST_FILE } from "../../src/log/storage/file_names.ts";
import { errorCode } from "../../src/log/storage/storage.ts";
import { s3Store } from "./s3_store.ts";
import { readStart, type SegmentStore, type SourceFile } from "./segment_store.ts";

/**
 * @param url A path, a `file:` URL or `s3://<bucket>[/<prefix>]`.
 * @throws {CommandError} for another URL, and for a path that is not UTF-8.
 */
export function openStore(url: string): SegmentStore {
  if (url.startsWith("s3:")) return s3Store(new URL(url));
  if (url.startsWith("file:")) return folderStore(absolutePath(fileURLToPath(url)));
  if (/^[a-z0-9+]+:/i.test(url)) throw usageError(`${url}: only file: and s3: are supported`);
  return folderStore(absolutePath(url));
}

/**
 * Reads and validates a store's manifest. Returns null if there is none.
 * @throws {CommandError} if it is too large, or not a valid manifest.
 */
export async function readStoredManifest(
  store: SegmentStore,
  url: string,
): Promise<Manifest | null> {
  const content = await store.get(MANIFEST_FILE);
  if (content === null) return null;
  const bytes = await readStart(content, MANIFEST_BYTES_MAX + 1);
  try {
    if (bytes.length <= MANIFEST_BYTES_MAX) return decodeManifest(bytes);
  } catch (error) {
    throw operationalError(`${url}: ${(error as Error).message}`);
  }
  throw operationalError(`${url}: ${MANIFEST_FILE} exceeds ${MANIFEST_BYTES_MAX} bytes`);
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
  const mismatch = () =>
    operationalError(
      `${path}: copied ${copied} bytes with SHA-256 ${hash.digest("hex")}, ` +
        `expected ${bytes} with ${sha256}`,
    );
  const copy = createWriteStream(asidePath, { mode: 0o600 });
  // If the copying failed before, the file would be created after it has been removed.
  await once(copy, "open");
  await pipeline(content, async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      copied += chunk.length;
      // Don't write or read the rest of a file that is too long.
      if (copied > bytes) throw mismatch();
      yield chunk;
    }
    if (copied !== bytes || hash.copy().digest("hex") !== sha256) throw mismatch();
  }, copy).catch(async (error) => {
    await rm(asidePath, { force: true });
    throw error;
  });
  await publish(asidePath, path);
}

/** Syncs a file, renames it and syncs the directory. */
async function publish(asidePath: string, path: string): Promise<void> {
  await sync(asidePath);
  await rename(asidePath, path);
  await sync(dirname(path));
}

function folderStore(folder: string): SegmentStore {
  const pathOf = async (name: string) => {
    const path = join(folder, name);
    await createFolder(dirname(path));
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

/** Returns null if `work` fails because a file, or a directory in its path, does not exist. */
export async function orNull<Result>(work: () => Promise<Result>): Promise<Result | null> {
  try {
    return await work();
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error))) return null;
    throw error;
  }
}

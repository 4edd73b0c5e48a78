/**
 * The committed inventory of segments: canonical JSON and one LF, replaced atomically. A folder
 * without one is an empty log whose first writer has not been there yet.
 */
import { Buffer } from "node:buffer";
import { canonicalize } from "../event/canonical_json.ts";
import { parseJson } from "../event/strict_json.ts";
import { MANIFEST_BYTES_MAX } from "../limits.ts";
import { MANIFEST_FILE, MANIFEST_TEMPORARY_FILE } from "./layout.ts";
import { CorruptLogError, UnsupportedFormatError } from "./log_error.ts";
import {
  FileTooLargeError,
  isNotFound,
  readSmallFile,
  replaceFile,
  type Storage,
} from "./storage.ts";

const FORMAT = "service/log";
/** The storage schema that this program writes, and the newest that it reads. */
const SCHEMA_VERSION = 1;

export interface Manifest {
  format: typeof FORMAT;
  schema_version: number;
  /** Oldest program, by storage schema, that may read the folder. */
  min_reader: number;
  /** Oldest program, by storage schema, that may write to it. */
  min_writer: number;
  segments: never[];
}

export const EMPTY_MANIFEST: Manifest = {
  format: FORMAT,
  schema_version: SCHEMA_VERSION,
  min_reader: SCHEMA_VERSION,
  min_writer: SCHEMA_VERSION,
  segments: [],
};

/**
 * The manifest of a folder; null when there is none.
 * @throws {CorruptLogError} when it cannot be what a writer left.
 * @throws {UnsupportedFormatError} when a newer program wrote the folder.
 */
export async function readManifest(storage: Storage): Promise<Manifest | null> {
  let bytes;
  try {
    bytes = await readSmallFile(storage, MANIFEST_FILE, MANIFEST_BYTES_MAX);
  } catch (error) {
    if (isNotFound(error)) return null;
    if (error instanceof FileTooLargeError) throw new CorruptLogError(error.message);
    throw error;
  }
  const manifest = parseManifest(bytes);
  for (const bound of ["min_reader", "min_writer"] as const) {
    if (manifest[bound] > SCHEMA_VERSION) {
      throw new UnsupportedFormatError(
        `${MANIFEST_FILE}: ${bound} is ${manifest[bound]}, this program knows ${SCHEMA_VERSION}; ` +
          "use the newer program that wrote the log",
      );
    }
  }
  if (!Buffer.from(bytes).equals(encodeManifest(manifest))) {
    throw new CorruptLogError(`${MANIFEST_FILE}: not a manifest of storage schema 1`);
  }
  return manifest;
}

export async function writeManifest(storage: Storage, manifest: Manifest): Promise<void> {
  await replaceFile(storage, MANIFEST_FILE, MANIFEST_TEMPORARY_FILE, encodeManifest(manifest));
}

function encodeManifest(manifest: Manifest): Buffer {
  return Buffer.from(canonicalize(manifest) + "\n");
}

/**
 * Checks what must be known before the version is; the rest is checked against the one encoding.
 */
function parseManifest(bytes: Uint8Array): Manifest {
  let value: unknown;
  try {
    value = parseJson(bytes);
  } catch (error) {
    throw new CorruptLogError(`${MANIFEST_FILE}: ${(error as Error).message}`);
  }
  const manifest = value as Partial<Manifest> | null;
  const known = typeof manifest === "object" && manifest !== null && manifest.format === FORMAT &&
    Number.isSafeInteger(manifest.min_reader) && Number.isSafeInteger(manifest.min_writer);
  if (!known) throw new CorruptLogError(`${MANIFEST_FILE}: not a manifest of a log`);
  return {
    ...EMPTY_MANIFEST,
    min_reader: manifest.min_reader as number,
    min_writer: manifest.min_writer as number,
  };
}

/** Inspects a log's files: their sizes, the segments and the sealing backlog. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Deployment } from "./deployment.ts";

export interface SealedPart {
  segments: number;
  events: number;
}

const POLL_MS = 100;
/** Files can disappear while a writer changes the directory. */
const GONE = "ENOENT";

function logFolder({ folder }: Deployment): string {
  return join(folder, "data", "log");
}

/** Returns the total size of the log's files. */
export async function logBytes(deployment: Deployment): Promise<number> {
  const folder = logFolder(deployment);
  let sizeBytes = 0;
  for (const name of await readdir(folder, { recursive: true })) {
    sizeBytes += await fileBytes(join(folder, name));
  }
  return sizeBytes;
}

/** Returns the size of the tail. */
export function tailBytes(deployment: Deployment): Promise<number> {
  return fileBytes(join(logFolder(deployment), "tail.ndjson"));
}

/** Reads the size of the sealed part of the log from the manifest. */
export async function sealedPart(deployment: Deployment): Promise<SealedPart> {
  const text = await readFile(join(logFolder(deployment), "manifest.json"), "utf8");
  const { segments } = JSON.parse(text) as { segments: { events: number }[] };
  const events = segments.reduce((total, segment) => total + segment.events, 0);
  return { segments: segments.length, events };
}

/** Waits until no pending files are left. @throws {Error} after `timeoutMs`. */
export async function nothingPending(deployment: Deployment, timeoutMs: number): Promise<void> {
  const folder = join(logFolder(deployment), "pending");
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const names = await readdir(folder);
    if (names.length === 0) return;
    if (performance.now() > deadlineMs) throw new Error(`${names.join(", ")}: still not sealed`);
    await delay(POLL_MS);
  }
}

/** Returns the size of a file; 0 if it is not a file or no longer exists. */
async function fileBytes(path: string): Promise<number> {
  try {
    const entry = await stat(path);
    return entry.isFile() ? entry.size : 0;
  } catch (error) {
    if ((error as { code?: string }).code === GONE) return 0;
    throw error;
  }
}

/** Inspects a log's files: their sizes, the segments and the sealing backlog. */
import { readdirSync, statSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Manifest } from "../../src/log/segment/manifest.ts";
import { sumOf } from "../../src/sum.ts";
import type { Deployment } from "./deployment.ts";

export interface SealedPart {
  segments: number;
  events: number;
  /** When the last segment was sealed. */
  lastMs: number;
}

const POLL_MS = 100;

/** Returns the directory of the log. */
export function logFolder({ folder }: Deployment): string {
  return join(folder, "data", "log");
}

/** Returns the total size of the log's files, or of those whose paths begin with `start`. */
export async function logBytes(deployment: Deployment, start = ""): Promise<number> {
  const folder = logFolder(deployment);
  const names = (await readdir(folder, { recursive: true })).filter((name) =>
    name.startsWith(start)
  );
  return sumOf(names, (name) => fileBytes(join(folder, name)));
}

/** Returns the size of the tail. */
export function tailBytes(deployment: Deployment): number {
  return fileBytes(join(logFolder(deployment), "tail.ndjson"));
}

/** Returns the size of the tail and the pending files. */
export function backlogBytes(deployment: Deployment): number {
  const folder = join(logFolder(deployment), "pending");
  const pendingBytes = sumOf(readdirSync(folder), (name) => fileBytes(join(folder, name)));
  return tailBytes(deployment) + pendingBytes;
}

/** Reads the size of the sealed part of the log from the manifest. */
export async function sealedPart(deployment: Deployment): Promise<SealedPart> {
  const text = await readFile(join(logFolder(deployment), "manifest.json"), "utf8");
  const { segments }: Manifest = JSON.parse(text);
  const lastMs = Date.parse(segments.at(-1)?.sealed_at ?? "");
  return { segments: segments.length, events: sumOf(segments, ({ events }) => events), lastMs };
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
function fileBytes(path: string): number {
  const entry = statSync(path, { throwIfNoEntry: false });
  return entry?.isFile() === true ? entry.size : 0;
}

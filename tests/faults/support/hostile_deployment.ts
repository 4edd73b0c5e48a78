/** A deployment with every kind of file, and copies in which one entry is replaced. */
import assert from "node:assert/strict";
import { cp, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { init } from "../../../src/commands/init.ts";
import { run } from "../../../src/commands/run.ts";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import type { VerifyReport } from "../../../src/log/verify/verify.ts";
import { openEventLog } from "../../../src/service/event_log.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly } from "../../support/sealing.ts";
import { realOptions } from "../../support/test_log.ts";
import { treeOf } from "../../support/file_tree.ts";
import type { HostileEntry } from "./hostile_entry.ts";

/** The result of a command that ran in this process. */
export interface CommandEnd {
  status: number;
  stdout: string;
  stderr: string;
}

/** A deployment with every kind of file. Paths are relative to `dir`. */
export interface WholeDeployment {
  dir: string;
  segment: string;
  pending: string;
}

/** Runs a command on a deployment. */
export async function runOn(dir: string, command: string[]): Promise<CommandEnd> {
  const end = { stdout: "", stderr: "" };
  const args = command[0] === "init" ? [...command, dir] : [...command, "--config", configOf(dir)];
  const status = await run(args, {
    print: (text) => end.stdout += text,
    report: (line) => end.stderr += `${line}\n`,
    showProgress: () => {},
    stop: new AbortController().signal,
  });
  return { ...end, status };
}

/** Number of events in a deployment from `makeWhole()`. */
export const WHOLE_EVENTS = 3;

/** Asserts that `verify --chain` finds all events of a deployment. */
export async function assertWhole(dir: string, events = WHOLE_EVENTS): Promise<VerifyReport> {
  const { status, stdout } = await runOn(dir, ["verify", "--chain"]);
  assert.equal(status, 0, stdout);
  const report: VerifyReport = JSON.parse(stdout);
  assert.equal(report.events_checked, events);
  return report;
}

export function configOf(dir: string): string {
  return join(dir, "service.toml");
}

async function append(logDir: string, batchId: string): Promise<void> {
  const log = await openEventLog(realOptions(logDir));
  await log.append(preparedBatch(batchId));
  await log.close();
}

/** Creates a deployment with a segment, a pending file and a tail with one event each. */
export async function makeWhole(dir: string): Promise<WholeDeployment> {
  const logDir = join(dir, "data", "log");
  await mkdir(dir);
  await init(dir);
  await append(logDir, "sealed");
  await runOn(dir, ["seal"]);
  await append(logDir, "pending");
  await rotateOnly(fileStorage(logDir));
  await append(logDir, "tail");
  const only = async (folder: string) => join(folder, (await readdir(join(dir, folder)))[0]!);
  const [segment, pending] = [await only("data/log/segments"), await only("data/log/pending")];
  return { dir, segment, pending };
}

/**
 * Runs `use` on a copy in which `entry` replaces the original, which is moved elsewhere.
 * @returns whether the original is unchanged.
 */
export async function withHostile(
  { dir: whole }: WholeDeployment,
  place: string,
  entry: HostileEntry,
  use: (dir: string) => Promise<void>,
): Promise<{ isOutsideUntouched: boolean }> {
  const folder = `${whole}-copy`;
  const [dir, outside] = [join(folder, "deployment"), join(folder, "outside")];
  await mkdir(outside, { recursive: true });
  await cp(whole, dir, { recursive: true });
  const original = join(outside, "original");
  await rename(join(dir, place), original).catch(() => {});
  const undo = await entry.put(join(dir, place), original);
  try {
    const before = await treeOf(outside);
    await use(dir);
    const after = await treeOf(outside);
    return { isOutsideUntouched: JSON.stringify(before) === JSON.stringify(after) };
  } finally {
    await undo?.();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Invariants of a log after any crash. */
import assert from "node:assert/strict";
import {
  MANIFEST_TEMPORARY_FILE,
  TAIL_TEMPORARY_FILE,
} from "../../../src/log/storage/file_names.ts";
import { verifyLog, type VerifyReport } from "../../../src/log/verify/verify.ts";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { seededRandom } from "../../../tools/support/random.ts";
import type { KnownHistory } from "../../support/known_history.ts";
import { statusOf } from "../../support/outcome.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { replayText } from "../../support/stream_listing.ts";
import { tailOf, withTail } from "../../support/test_log.ts";
import { answerTo, submittedEvent } from "../../support/submitted.ts";
import { type CrashPoints, treeHash } from "./crash_points.ts";
import { HistoryMachine } from "./history_machine.ts";

/** How far the clock is set back before the first commit. */
const SET_BACK_MS = 3_600_000;

/** The only message that recovery may report. */
export const REPAIR_REPORT = /^tail\.ndjson: removed \d+ bytes of an unfinished commit after /;

/** Asserts that `verify --chain` finds no violation. @returns its report. */
export async function verified(tree: Tree): Promise<VerifyReport> {
  const { report, failure } = await verifyLog(new SimulatedDisk(tree), { chain: true });
  assert.equal(failure, null, `verify --chain: ${failure?.code} ${failure?.message}`);
  return report;
}

/** Asserts that recovered data is durable before any client sees it. */
export function assertDurable(disk: SimulatedDisk): void {
  if (disk.isDurable) return;
  const left = disk.crash().tree();
  // Recovery ignores leftover temporary files, so their removal need not be durable.
  left.delete(MANIFEST_TEMPORARY_FILE);
  left.delete(TAIL_TEMPORARY_FILE);
  assert.equal(treeHash(left), treeHash(disk.tree()), "recovered data is durable");
}

function machineWith(tree: Tree): HistoryMachine {
  const machine = new HistoryMachine(seededRandom(2), tree);
  machine.changeClock((nowMs) => nowMs - SET_BACK_MS);
  return machine;
}

/** Starts on the files that a crash left and checks the log. @returns the files after startup. */
async function recover(
  tree: Tree,
  known: KnownHistory,
  points: CrashPoints<KnownHistory> | null,
): Promise<Tree> {
  const before = await verified(tree);
  const machine = machineWith(tree);
  const unsettled = known.copy();
  if (points !== null) {
    machine.watch = (operation) => points.beforeOperation(machine.disk, operation, () => unsettled);
  }
  const service = await machine.start((line) => assert.match(line, REPAIR_REPORT));
  machine.watch = null;
  assertDurable(machine.disk);
  const text = await replayText(service!);
  assert.ok(text.startsWith(known.text), "acknowledged events survive");
  known.settle(text.slice(known.text === "" ? 0 : known.text.length + 1));
  assert.equal(before.events_checked, known.events.length, "verify and recovery see the same log");
  return machine.disk.tree();
}

/** Hashes of recovered trees that were already checked. */
export interface CheckedTrees {
  settled: Set<string>;
  goesOn: Set<string>;
}

/** Starts the service on a valid log. Asserts that it removes only reserved space. */
export async function reopen(tree: Tree): Promise<EventLogService> {
  const machine = machineWith(tree);
  const service = await machine.start((line) => assert.fail(`nothing is left to repair: ${line}`));
  const tail = tailOf(tree);
  const expected = withTail(tree, tail.subarray(0, tail.lastIndexOf("\n") + 1));
  assert.equal(treeHash(machine.disk.tree()), treeHash(expected), "startup changes no byte");
  return service!;
}

/**
 * Asserts that the log remains usable. Clients resubmit everything in order: batches in the log are
 * duplicates, and the others are committed unless later events forbid them.
 */
async function assertGoesOn(tree: Tree, known: KnownHistory): Promise<void> {
  const machine = machineWith(tree);
  const service = (await machine.start())!;
  for (const mutation of [...known.mutations]) {
    await known.submit(service, mutation);
    known.shows(await replayText(service, known.frontier));
  }
  await assertConflict(service, known);
  assert.equal(await replayText(service), known.text, "history only grows");
  await service.close();
  const report = await verified(machine.disk.crash().tree());
  assert.deepEqual([...report.orphans, ...report.remnants], []);
  assert.equal(report.events_checked, known.events.length);
}

/** Asserts that a known batch id with different events is a conflict. */
async function assertConflict(service: EventLogService, { events }: KnownHistory): Promise<void> {
  const last = events.findLast(({ source }) => source !== "system");
  if (last === undefined) return;
  const { source, batch_id } = last;
  const batch = { source, batch_id, events: [submittedEvent("orders", "other events")] };
  const outcome = await answerTo(service, { kind: "append", batch });
  assert.equal(statusOf(outcome), "batch_id_conflict");
}

/**
 * Checks the files that a crash left, and that the log remains usable.
 * @param before the mutations and their outcomes. Calls that share `checked` must share a run.
 * @param points collects the states that a second crash, during recovery, can leave.
 */
export async function checkCrashState(
  tree: Tree,
  before: KnownHistory,
  checked: CheckedTrees,
  points: CrashPoints<KnownHistory> | null = null,
): Promise<void> {
  const known = before.copy();
  const recovered = await recover(tree, known, points);
  const hash = treeHash(recovered);
  await once(checked.settled, hash, () => reopen(recovered));
  const facts = `${hash} ${known.mutations.length} ${known.receipts}`;
  await once(checked.goesOn, facts, () => assertGoesOn(recovered, known));
}

async function once(
  done: Set<string>,
  key: string,
  check: () => Promise<unknown>,
): Promise<void> {
  if (done.has(key)) return;
  await check();
  done.add(key);
}

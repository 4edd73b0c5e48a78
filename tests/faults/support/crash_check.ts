/** What must hold of a log whatever a crash has left of it. */
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
import { answerTo, submittedEvent } from "../../support/submitted.ts";
import { type CrashPoints, treeHash } from "./crash_points.ts";
import { HistoryMachine } from "./history_machine.ts";

/** Before anything was committed: the clock of the machine may be set back. */
const SET_BACK_MS = 3_600_000;

/** All that recovery may have to say: what it removed of a commit that was not finished. */
export const REPAIR_REPORT = /^tail\.ndjson: removed \d+ bytes of an unfinished commit after /;

/** That `verify --chain` finds nothing. @returns its report. */
export async function verified(tree: Tree): Promise<VerifyReport> {
  const { report, failure } = await verifyLog(new SimulatedDisk(tree), { chain: true });
  assert.equal(failure, null, `verify --chain: ${failure?.code} ${failure?.message}`);
  return report;
}

/** What was recovered is durable before anyone is told of it. */
export function assertDurable(disk: SimulatedDisk): void {
  if (disk.isDurable) return;
  const left = disk.crash().tree();
  // They mean nothing, so their removal may be undone.
  left.delete(MANIFEST_TEMPORARY_FILE);
  left.delete(TAIL_TEMPORARY_FILE);
  assert.equal(treeHash(left), treeHash(disk.tree()), "what was recovered is durable");
}

function machineWith(tree: Tree): HistoryMachine {
  const machine = new HistoryMachine(seededRandom(2), tree);
  machine.changeClock((nowMs) => nowMs - SET_BACK_MS);
  return machine;
}

/** Starts on what a crash left, and checks what is there. @returns what a start has made of it. */
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
  assert.ok(text.startsWith(known.text), "what was known is there");
  known.settle(text.slice(known.text === "" ? 0 : known.text.length + 1));
  assert.equal(before.events_checked, known.events.length, "verify and recovery see the same log");
  return machine.disk.tree();
}

/** What has been checked of trees that a recovery made: of the same bytes, it is checked once. */
export interface CheckedTrees {
  settled: Set<string>;
  goesOn: Set<string>;
}

/** A start on a tree that was recovered changes no byte and has nothing to repair. */
export async function reopen(tree: Tree): Promise<EventLogService> {
  const machine = machineWith(tree);
  const service = await machine.start((line) => assert.fail(`nothing is left to repair: ${line}`));
  assert.equal(treeHash(machine.disk.tree()), treeHash(tree), "a start leaves identical bytes");
  return service!;
}

/**
 * Clients submit everything again, in order: what the log holds is answered from it, and the rest
 * is taken now, unless what it holds by now forbids it. So the log goes on.
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

/** A batch id that the log knows is not taken for other events. */
async function assertConflict(service: EventLogService, { events }: KnownHistory): Promise<void> {
  const last = events.findLast(({ source }) => source !== "system");
  if (last === undefined) return;
  const { source, batch_id } = last;
  const batch = { source, batch_id, events: [submittedEvent("orders", "other events")] };
  const outcome = await answerTo(service, { kind: "append", batch });
  assert.equal(statusOf(outcome), "batch_id_conflict");
}

/**
 * Checks a state that a crash has left, and that the log goes on from it.
 * @param before what was submitted and answered before; of one run for one `checked`.
 * @param points takes down what a second crash, during the recovery, can leave.
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

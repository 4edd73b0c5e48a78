/** What must hold of a log whatever a crash has left of it. */
import assert from "node:assert/strict";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import {
  MANIFEST_TEMPORARY_FILE,
  TAIL_TEMPORARY_FILE,
} from "../../../src/log/storage/file_names.ts";
import { verifyLog, type VerifyReport } from "../../../src/log/verify/verify.ts";
import { seededRandom } from "../../../tools/support/random.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { replayAll } from "../../support/stream_listing.ts";
import { TEST_TIME_MS } from "../../support/test_log.ts";
import { openWatchedService } from "../../support/watched_log.ts";
import { type CrashPoints, treeHash } from "./crash_points.ts";
import { steadyTime } from "./crash_session.ts";
import type { Ledger } from "./ledger.ts";

/** An hour before anything was committed: the clock of the machine may be set back. */
const SET_BACK_MS = TEST_TIME_MS - 3_600_000;

/** All that recovery may have to say: what it removed of a commit that was not finished. */
export const REPAIR_REPORT = /^tail\.ndjson: removed \d+ bytes of an unfinished commit after /;

/** That `verify --chain` finds nothing. @returns its report. */
export async function verified(tree: Tree): Promise<VerifyReport> {
  const { report, failure } = await verifyLog(new SimulatedDisk(tree), { chain: true });
  assert.equal(failure, null, `verify --chain: ${failure?.code} ${failure?.message}`);
  return report;
}

async function open(disk: SimulatedDisk) {
  const reports: string[] = [];
  const service = await openWatchedService({
    storage: disk,
    ...steadyTime(SET_BACK_MS, seededRandom(2)),
    report: (line) => void reports.push(line),
  });
  return { service, reports };
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

/** What a start has made of a state. */
interface Recovered {
  tree: Tree;
  events: CommittedEvent[];
}

/** Starts on what a crash left, and checks what is there. */
async function recover(
  tree: Tree,
  ledger: Ledger,
  points: CrashPoints<Ledger> | null,
): Promise<Recovered> {
  const before = await verified(tree);
  const disk = new SimulatedDisk(tree);
  if (points !== null) {
    disk.hook = async (operation) => {
      await points.beforeOperation(disk, operation, () => ledger);
      return null;
    };
  }
  const { service, reports } = await open(disk);
  disk.hook = null;
  assertDurable(disk);
  for (const line of reports) assert.match(line, REPAIR_REPORT);
  const events = await replayAll(service);
  ledger.assertHeldBy(events);
  assert.equal(before.events_checked, events.length, "verify and recovery see the same log");
  return { tree: disk.tree(), events };
}

/** What has been checked of trees that a recovery made: of the same bytes, it is checked once. */
export interface CheckedTrees {
  settled: Set<string>;
  goesOn: Set<string>;
}

/** A second start changes nothing of what the first has left. */
async function assertSettled(tree: Tree, hash: string): Promise<void> {
  const disk = new SimulatedDisk(tree);
  const { reports } = await open(disk);
  assert.deepEqual(reports, [], "nothing is left to repair");
  assert.equal(treeHash(disk.tree()), hash, "recovery run twice leaves identical bytes");
}

/** Clients find their answers again and go on, and so does the log. */
async function assertGoesOn({ tree, events }: Recovered, ledger: Ledger): Promise<void> {
  const disk = new SimulatedDisk(tree);
  const { service } = await open(disk);
  const goesOn = ledger.copy();
  await goesOn.submitAgain(service, events);
  const allEvents = await replayAll(service);
  goesOn.assertHeldBy(allEvents);
  assert.deepEqual(allEvents.slice(0, events.length), events, "history only grows");
  await service.close();
  const report = await verified(disk.crash().tree());
  assert.deepEqual([...report.orphans, ...report.remnants], []);
  assert.equal(report.events_checked, allEvents.length);
}

/**
 * Checks a state that a crash has left, and that the log goes on from it.
 * @param ledger what was submitted and answered before; of one run for one `checked`.
 * @param points takes down what a second crash, during the recovery, can leave.
 */
export async function checkCrashState(
  tree: Tree,
  ledger: Ledger,
  checked: CheckedTrees,
  points: CrashPoints<Ledger> | null = null,
): Promise<void> {
  const recovered = await recover(tree, ledger, points);
  const hash = treeHash(recovered.tree);
  await once(checked.settled, hash, () => assertSettled(recovered.tree, hash));
  const { calls, receipts } = ledger;
  const known = `${hash} ${calls.length} ${receipts}`;
  await once(checked.goesOn, known, () => assertGoesOn(recovered, ledger));
}

async function once(done: Set<string>, key: string, check: () => Promise<void>): Promise<void> {
  if (done.has(key)) return;
  await check();
  done.add(key);
}

/** Retirements, lineage markers and batches that arrive together or wait for each other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type OpenLog, openLog } from "../support/open_log.ts";
import { type Outcome, statusOf } from "../support/outcome.ts";
import { lineageMarker, submittedBatch, submittedEvent } from "../support/submitted.ts";

/** A call to a log whose sources `old` and `gone` end at these events. `gone` is retired. */
type Call = (log: OpenLog, last: Record<string, string>) => Promise<Outcome>;

const retire = (source: string): Call => (log) => log.retire(source);

/** A batch of one event from source `new`. */
const plain = (batchId = "0"): Call => (log) => log.submit(submittedBatch("new", batchId));

/** A batch from source `new` with a marker and one other event. */
const succeed = (predecessor: string, batchId = "1"): Call => (log, last) => {
  const events = [lineageMarker(predecessor, last[predecessor]!), submittedEvent()];
  return log.submit({ source: "new", batch_id: batchId, events });
};

const CONFLICT = "source_lineage_conflict";

/** Calls in one turn of the event loop, and their outcomes. */
const TURNS: [title: string, calls: Call[], expected: string[]][] = [
  ["a retirement, then its successor", [retire("old"), succeed("old")], ["retired", "committed"]],
  ["a successor, then the retirement", [succeed("old"), retire("old")], [CONFLICT, "retired"]],
  ["an event, then a marker", [plain(), succeed("gone")], ["committed", CONFLICT]],
  ["a marker, then an event", [succeed("gone"), plain()], ["committed", "committed"]],
  ["two markers", [succeed("gone"), succeed("gone", "2")], ["committed", CONFLICT]],
  [
    "a marker, then the successor's retirement",
    [succeed("gone"), retire("new")],
    ["committed", "retired"],
  ],
  [
    "the successor's retirement, then a marker",
    [retire("new"), succeed("gone")],
    ["source_not_found", "committed"],
  ],
  [
    "retirements and batches",
    [retire("new"), plain("1"), retire("new"), plain("2"), retire("new")],
    ["source_not_found", "committed", "retired", "source_retired", "already_retired"],
  ],
];

for (const [title, calls, expected] of TURNS) {
  test(`append() and retire() in one turn: ${title}`, async () => {
    const log = await openLog();
    const old = await log.commit(submittedBatch("old", "1"));
    const gone = await log.commit(submittedBatch("gone", "1"));
    await log.retire("gone");
    const outcomes = await Promise.all(calls.map((call) => call(log, { old, gone })));
    assert.deepEqual(outcomes.map(statusOf), expected);
    await log.service.close();
  });
}

test("retire() holds back only batches of its source", async () => {
  const log = await openLog();
  await log.commit(submittedBatch("shop", "1"));
  await log.commit(submittedBatch("crm", "1"));
  const outcomes = await Promise.all([
    log.submit(submittedBatch("shop", "2")),
    log.retire("crm"),
    log.retire("shop"), // Waits for batch 2.
    log.submit(submittedBatch("shop", "3")), // Waits for the retirement, which waits.
    log.submit(submittedBatch("crm", "4")),
    log.submit(submittedBatch("erp", "5")),
  ]);
  assert.deepEqual(outcomes.map(statusOf), [
    "committed",
    "retired",
    "retired",
    "source_retired",
    "source_retired",
    "committed",
  ]);
  const batchIds = (await log.events()).map(({ batch_id }) => batch_id.split("/").slice(0, 3));
  const retirements = [["service", "retire", "crm"], ["service", "retire", "shop"]];
  const expected = [["1"], ["1"], ["2"], retirements[0], ["5"], retirements[1]];
  assert.deepEqual(batchIds, expected);
  await log.service.close();
});

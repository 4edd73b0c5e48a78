/** Lineage markers and retirements that arrive in the same turn of the event loop. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenLog } from "../support/open_log.ts";
import { type Outcome, statusOf } from "../support/outcome.ts";
import { lineageMarker, submittedBatch, submittedEvent } from "../support/submitted.ts";

/** A call to a log whose sources `old` and `gone` end at these events. `gone` is retired. */
type Call = (log: OpenLog, last: Record<string, string>) => Promise<Outcome>;

const retire = (source: string): Call => (log) => log.retire(source);

/** An event from source `new`. */
const plain: Call = (log) => log.submit(submittedBatch("new", "0"));

/** A batch from source `new` with a marker and one other event. */
const succeed = (predecessor: string, batchId = "1"): Call => (log, last) => {
  const events = [lineageMarker(predecessor, last[predecessor]!), submittedEvent()];
  return log.submit({ source: "new", batch_id: batchId, events });
};

const CONFLICT = "source_lineage_conflict";

/** Pairs of calls in one turn, and their outcomes. */
const PAIRS: [title: string, pair: [Call, Call], expected: [string, string]][] = [
  ["a retirement, then its successor", [retire("old"), succeed("old")], ["retired", "committed"]],
  ["a successor, then the retirement", [succeed("old"), retire("old")], [CONFLICT, "retired"]],
  ["an event, then a marker", [plain, succeed("gone")], ["committed", CONFLICT]],
  ["a marker, then an event", [succeed("gone"), plain], ["committed", "committed"]],
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
];

for (const [title, pair, expected] of PAIRS) {
  test(`append() and retire() in one turn: ${title}`, async () => {
    const log = await OpenLog.open();
    const old = await log.commit(submittedBatch("old", "1"));
    const gone = await log.commit(submittedBatch("gone", "1"));
    await log.retire("gone");
    const outcomes = await Promise.all(pair.map((call) => call(log, { old, gone })));
    assert.deepEqual(outcomes.map(statusOf), expected);
    await log.service.close();
  });
}

/** Lineage markers and retirements that arrive in the same turn of the event loop. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, statusOf } from "../support/outcome.ts";
import { RestartableLog } from "../support/restartable_log.ts";
import {
  lineageMarker,
  type SubmittedBatch,
  submittedBatch,
  submittedEvent,
} from "../support/submitted.ts";

/** A batch from source `new` with a marker and one other event. */
function succeeding(frontier: string, predecessor = "old", batchId = "1"): SubmittedBatch {
  const events = [lineageMarker(predecessor, frontier), submittedEvent()];
  return { source: "new", batch_id: batchId, events };
}

/** Pairs of calls in one turn, and their outcomes. `gone` is already retired, `old` is not. */
const PAIRS: [
  title: string,
  pair: (log: RestartableLog, last: { old: string; gone: string }) => Promise<Outcome>[],
  expected: [string, string],
][] = [
  [
    "a retirement, then its successor",
    (log, last) => [log.retire("old"), log.submit(succeeding(last.old))],
    ["retired", "committed"],
  ],
  [
    "a successor, then the retirement",
    (log, last) => [log.submit(succeeding(last.old)), log.retire("old")],
    ["source_lineage_conflict", "retired"],
  ],
  [
    "an event, then a marker",
    (
      log,
      last,
    ) => [log.submit(submittedBatch("new", "0")), log.submit(succeeding(last.gone, "gone"))],
    ["committed", "source_lineage_conflict"],
  ],
  [
    "a marker, then an event",
    (
      log,
      last,
    ) => [log.submit(succeeding(last.gone, "gone")), log.submit(submittedBatch("new", "0"))],
    ["committed", "committed"],
  ],
  [
    "two markers",
    (log, last) => [
      log.submit(succeeding(last.gone, "gone", "1")),
      log.submit(succeeding(last.gone, "gone", "2")),
    ],
    ["committed", "source_lineage_conflict"],
  ],
  [
    "a marker, then the successor's retirement",
    (log, last) => [log.submit(succeeding(last.gone, "gone")), log.retire("new")],
    ["committed", "retired"],
  ],
  [
    "the successor's retirement, then a marker",
    (log, last) => [log.retire("new"), log.submit(succeeding(last.gone, "gone"))],
    ["source_not_found", "committed"],
  ],
];

for (const [title, pair, expected] of PAIRS) {
  test(`append() and retire() in one turn: ${title}`, async () => {
    const log = await RestartableLog.open();
    const old = await log.commit(submittedBatch("old", "1"));
    const gone = await log.commit(submittedBatch("gone", "1"));
    await log.retire("gone");
    const frontiers = { old, gone };
    const outcomes = await Promise.all(pair(log, frontiers));
    assert.deepEqual(outcomes.map(statusOf), expected);
    await log.service.close();
  });
}

/** What the writer makes of a lineage marker; its form is tested with the rules of events. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, statusOf } from "../support/outcome.ts";
import { RestartableLog, testWithRestart } from "../support/restartable_log.ts";
import {
  lineageMarker,
  type SubmittedBatch,
  submittedBatch,
  submittedEvent,
} from "../support/submitted.ts";

const NEVER_COMMITTED = "019b7c4e-2d37-7a01-8f00-000000000001";

/** A batch of `new` that declares a predecessor and goes on with one event. */
function succeeding(frontier: string, predecessor = "old", batchId = "1"): SubmittedBatch {
  const events = [lineageMarker(predecessor, frontier), submittedEvent()];
  return { source: "new", batch_id: batchId, events };
}

function conflict(expected: string, actual: string | null, predecessor = "old"): Outcome {
  return {
    status: 409,
    body: {
      error: "source_lineage_conflict",
      source: "new",
      predecessor_source: predecessor,
      expected_predecessor_frontier: expected,
      actual_predecessor_frontier: actual,
    },
  };
}

/** Commits two batches of a source and retires it; the first and the last of its events. */
async function retired(log: RestartableLog, source = "old") {
  const first = await log.commit(submittedBatch(source, "1"));
  const last = await log.commit(submittedBatch(source, "2"));
  const { body } = await log.retire(source);
  return { first, last, retirement: body.retirement_event_id as string };
}

testWithRestart("append() refuses a marker that names another event", async (log, settle) => {
  const { first, last, retirement } = await retired(log);
  await settle();
  for (const frontier of [first, retirement, NEVER_COMMITTED]) {
    assert.deepEqual(await log.submit(succeeding(frontier)), conflict(frontier, last));
  }
  assert.equal((await log.events()).length, 3);
  assert.equal(statusOf(await log.submit(succeeding(last))), "committed");
});

testWithRestart(
  "append() refuses a second marker, of the same or another predecessor",
  async (log, settle) => {
    const { last } = await retired(log);
    const { last: lastOfOther } = await retired(log, "other");
    await log.submit(succeeding(last));
    await settle();
    assert.deepEqual(await log.submit(succeeding(last, "old", "2")), conflict(last, last));
    assert.deepEqual(
      await log.submit(succeeding(lastOfOther, "other", "2")),
      conflict(lastOfOther, lastOfOther, "other"),
    );
  },
);

testWithRestart("append() looks at batch id and retirement before lineage", async (log, settle) => {
  const { last } = await retired(log);
  const { body } = await log.submit(succeeding(last));
  await settle();
  const duplicate = { status: 200, body: { ...body, status: "duplicate" } };
  assert.deepEqual(await log.submit(succeeding(last)), duplicate);
  assert.equal(statusOf(await log.submit(succeeding(NEVER_COMMITTED))), "batch_id_conflict");
  await log.retire("new");
  await settle();
  assert.deepEqual(await log.submit(succeeding(last)), duplicate);
  const other = succeeding(last, "old", "2");
  assert.equal(statusOf(await log.submit(other)), "source_retired");
});

testWithRestart(
  "append() refuses a marker in the wrong form before it looks at the log",
  async (log, settle) => {
    const { last } = await retired(log);
    await settle();
    const misplaced = { ...succeeding(last), events: succeeding(last).events.toReversed() };
    const itself = { ...succeeding(last), source: "old" };
    for (const batch of [misplaced, itself]) {
      const invalid = { status: 400, body: { error: "invalid_source_lineage" } };
      assert.deepEqual(await log.submit(batch), invalid);
    }
  },
);

/** Pairs in one turn, and how they end: `gone` is retired before, `old` is not. */
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
    const { last: gone } = await retired(log, "gone");
    const frontiers = { old, gone };
    const outcomes = await Promise.all(pair(log, frontiers));
    assert.deepEqual(outcomes.map(statusOf), expected);
    await log.service.close();
  });
}

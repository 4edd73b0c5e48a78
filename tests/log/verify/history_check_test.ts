import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { sha256Hex } from "../../../src/event/hash.ts";
import type { PreparedBatch } from "../../../src/event/types.ts";
import { readCommits } from "../../../src/log/wal/commit_reader.ts";
import { HistoryCheck } from "../../../src/log/verify/history_check.ts";
import { type FailureCode, VerifyFailure } from "../../../src/log/verify/failure.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { repairFraming } from "../../support/corrupt.ts";
import { simulatedFile } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { hostileBatch, pendingFile, smallBatches } from "../../support/test_segment.ts";

const DEFAULT = { chain: false };
const CHAIN = { chain: true };

async function feed(history: HistoryCheck, bytes: Uint8Array): Promise<void> {
  history.enterFile("tail.ndjson", "tail_invalid");
  const file = await simulatedFile(bytes);
  for await (const { commit, lines } of readCommits(file, 0, bytes.length, "tail.ndjson")) {
    history.addCommit(commit, lines);
  }
}

/** What a pass over these bytes, whose frames are made right, finds; null when nothing. */
async function findFailure(
  bytes: Buffer,
  options: { chain: boolean },
): Promise<FailureCode | null> {
  try {
    await feed(new HistoryCheck(options), repairFraming(bytes));
  } catch (error) {
    assert.ok(error instanceof VerifyFailure, String(error));
    return error.code;
  }
  return null;
}

test(`HistoryCheck passes what was committed (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const hostile = Array.from(
    { length: 200 },
    (_, n) => hostileBatch(random, n, 1 + random.below(9)),
  );
  const keys = "\u0001".repeat(1000);
  const large = preparedBatch("large", { events: Array(2000).fill({ recordKey: keys }) });
  const { bytes, entries, head } = pendingFile([hostile, [], [large], smallBatches(100)]);
  for (const options of [DEFAULT, CHAIN]) {
    const told: string[] = [];
    const history = new HistoryCheck({ ...options, onBatch: (entry) => told.push(entry.batch_id) });
    await feed(history, bytes);
    history.checkHead(head);
    assert.deepEqual(told, entries.map((entry) => entry.batch_id));
    assert.equal(history.lastEventId, entries.at(-1)!.last_event_id);
  }
});

function commits(): PreparedBatch[][] {
  const events = [{ recordKey: "x", occurredAt: "2026-01-01T00:00:00Z" }, { recordKey: "y" }];
  return [["a", "b"].map((batchId) => preparedBatch(batchId, { events })), smallBatches(2)];
}

type Edit = (text: string) => string;
const replace = (from: string, to: string): Edit => (text) => {
  assert.ok(text.includes(from), from);
  return text.replace(from, to);
};

/** Edits of a file, which keep its length, and what each pass finds. */
const EDITS: [string, Edit, FailureCode | null, FailureCode | null][] = [
  ["nothing", (text) => text, null, null],
  [
    "a payload and its hash",
    (text) =>
      replace(sha256Hex("null"), sha256Hex("true"))(
        replace('"payload":null', '"payload":true')(text),
      ),
    "batch_commitment_mismatch",
    "event_hash_mismatch",
  ],
  ...([
    ["a batch id in a frame", replace('"batch_id":"a"', '"batch_id":"c"')],
    [
      "a batch id in a line",
      replace('"batch_id":"a","event_hash"', '"batch_id":"c","event_hash"'),
    ],
    ["a source in a frame", replace('"source":"shop"}', '"source":"show"}')],
    ["a line that is no event", replace('"kind":', '"kinds":')],
    [
      "the first id in a frame",
      (text) => text.replace(/("first_event_id":".{35})./, "$1f"),
    ],
    [
      "an id that is none",
      (text) => text.replace(/{"event_id":".{14}7/, (start) => start.slice(0, -1) + "x"),
    ],
  ] satisfies [string, Edit][]).map(([name, edit]): typeof EDITS[number] => [
    name,
    edit,
    "tail_invalid",
    "tail_invalid",
  ]),
];

test("HistoryCheck finds edits behind frames that are right", async () => {
  for (const [name, edit, byDefault, byChain] of EDITS) {
    // `bytes` of the frames are made right too.
    const text = fixSizes(edit(pendingFile(commits()).bytes.toString("latin1")));
    const bytes = Buffer.from(text, "latin1");
    assert.equal(await findFailure(bytes, DEFAULT), byDefault, name);
    assert.equal(await findFailure(bytes, CHAIN), byChain, name);
  }
});

/** Gives every commit the size of the lines that follow it. */
function fixSizes(text: string): string {
  return text.split(/(?=^\{"commit":)/m).map((commit) => {
    const bodyBytes = commit.length - commit.indexOf("\n") - 1;
    return commit.replace(/"bytes":\d+/, `"bytes":${bodyBytes}`);
  }).join("");
}

test("HistoryCheck goes on from one file to the next", async () => {
  const { bytes } = pendingFile(commits());
  const history = new HistoryCheck(DEFAULT);
  await feed(history, bytes);
  await assert.rejects(feed(history, bytes), { code: "order_invalid" });
});

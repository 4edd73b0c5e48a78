import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { Table, writeParquet } from "parquet-wasm";
import { sha256Hex } from "../../../src/event/hash.ts";
import { HistoryCheck } from "../../../src/log/verify/history_check.ts";
import { encodeFooter } from "../../../src/log/parquet/footer.ts";
import { buildKeyFilter, KEY_PAGE_BYTES } from "../../../src/log/segment/key_filter.ts";
import type { StreamEntry } from "../../../src/log/read/stream_counts.ts";
import {
  decodeStreamBlock,
  encodeStreamIndex,
  isSourceKey,
} from "../../../src/log/segment/stream_index.ts";
import type { ExpectedSegment } from "../../../src/log/segment/segment_metadata.ts";
import { verifySegment } from "../../../src/log/verify/segment_verifier.ts";
import { type FailureCode, VerifyFailure } from "../../../src/log/verify/failure.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import {
  describeRows,
  fileFacts,
  type ForgedRow,
  type Forgery,
  forgeSegment,
} from "../../support/forged_segment.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import {
  hostileBatch,
  pendingFile,
  sealCommits,
  smallBatches,
  splitLines,
} from "../../support/test_segment.ts";

const DEFAULT = { chain: false };
const CHAIN = { chain: true };

/** What a pass finds; null when nothing. */
async function findFailure(
  storage: SimulatedDisk,
  entries: ExpectedSegment[],
  options: { chain: boolean },
): Promise<FailureCode | null> {
  const history = new HistoryCheck(options);
  try {
    for (const entry of entries) await verifySegment(storage, entry, history);
  } catch (error) {
    assert.ok(error instanceof VerifyFailure, String(error));
    return error.code;
  } finally {
    assert.equal(storage.openFiles, 0);
  }
  return null;
}

test(`verifySegment() passes what the writer wrote (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const hostile = Array.from(
    { length: 100 },
    (_, n) => hostileBatch(random, n, 1 + random.below(9)),
  );
  const large = preparedBatch("large", { events: Array(9000).fill({}) });
  const commits = [hostile, [large], smallBatches(5000)];
  const { storage, segments, entries } = await sealCommits(commits, { events: 9100, bytes: 1e9 });
  assert.equal(segments.length, 2);
  for (const options of [DEFAULT, CHAIN]) {
    const batches: string[] = [];
    const history = new HistoryCheck({
      ...options,
      onBatch: ({ batch_id }) => void batches.push(batch_id),
    });
    for (const entry of segments) await verifySegment(storage, entry, history);
    const events = entries.reduce((sum, entry) => sum + entry.events, 0);
    assert.equal(history.eventsChecked, events);
    assert.deepEqual(batches, entries.map(({ batch_id }) => batch_id));
  }
});

test("verifySegment() reads no payload unless the chain is followed", async () => {
  const events = Array.from({ length: 50 }, (_, n) => ({ payload: `${n}`.repeat(20_000) }));
  const { storage, segments } = await sealCommits([[preparedBatch("a", { events })]]);
  const bytesRead = async (options: { chain: boolean }) => {
    const before = storage.operations.length;
    assert.equal(await findFailure(storage, segments, options), null);
    const reads = storage.operations.slice(before).filter(({ kind }) => kind === "read");
    return reads.reduce((sum, { sizeBytes }) => sum + sizeBytes!, 0);
  };
  assert.ok(await bytesRead(DEFAULT) < await bytesRead(CHAIN) - 10_000);
});

const OTHER_HASH = "a".repeat(64);

test("verifySegment() finds a manifest that says other things than the footer", async () => {
  const { storage, segments: [entry] } = await sealCommits([smallBatches(3)]);
  const changes: Partial<ExpectedSegment>[] = [
    { events: 4 },
    { batches: 2 },
    { first_event_id: entry!.last_event_id },
    { last_event_id: entry!.first_event_id },
    { head: OTHER_HASH },
    { previous_head: OTHER_HASH },
  ];
  for (const change of changes) {
    const found = await findFailure(storage, [{ ...entry!, ...change }], DEFAULT);
    assert.equal(found, "segment_invalid", JSON.stringify(change));
  }
});

test("verifySegment() finds segments in another order", async () => {
  const commits = smallBatches(6).map((batch) => [batch]);
  const { storage, segments } = await sealCommits(commits, { events: 2, bytes: 1e9 });
  assert.equal(await findFailure(storage, segments, CHAIN), null);
  assert.equal(await findFailure(storage, segments.toReversed(), DEFAULT), "order_invalid");
  const [first, , third] = segments;
  assert.equal(await findFailure(storage, [first!, first!], DEFAULT), "order_invalid");
  assert.equal(await findFailure(storage, [first!, third!], CHAIN), "chain_head_mismatch");
});

/** Four batches of two events in four streams, as rows. */
function someRows(): ForgedRow[] {
  const batches = ["a", "b", "c", "d"].map((batchId) =>
    preparedBatch(batchId, { events: [{ stream: `s${batchId}`, recordKey: batchId }, {}] })
  );
  const { lines, entries } = pendingFile([batches]);
  return splitLines(lines).map((line, n) => ({ line, entry: entries[n >> 1]! }));
}

function changeLine(row: ForgedRow, change: (line: string) => string): ForgedRow {
  return { ...row, line: Buffer.from(change(row.line.toString())) };
}

const withPayload = (line: string) => line.replace('"payload":null', '"payload":1');
const withContent = (line: string) => withPayload(line).replace(sha256Hex("null"), sha256Hex("1"));

type Forge = (rows: ForgedRow[]) => Forgery;

/** Forges the line of the first row. */
function forgeLine(change: (line: string) => string): Forge {
  return ([row, ...rest]) => ({ groups: [[changeLine(row!, change), ...rest]] });
}

/** Forges a segment of these rows in other places. */
function forgeOrder(order: readonly number[]): Forge {
  return (rows) => ({ groups: [order.map((place) => rows[place]!)] });
}

function forgeIndex(index: NonNullable<Forgery["index"]>): Forge {
  return (rows) => ({ groups: [rows], index });
}

/** Forges the stream index. */
function forgeStreams(change: (entries: StreamEntry[]) => StreamEntry[]): Forge {
  return (rows) => {
    const entries = decodeStreamBlock(describeRows(rows).index.stream_blocks);
    return forgeIndex(encodeStreamIndex(change(entries)))(rows);
  };
}

function forgeMetadata(metadata: NonNullable<Forgery["metadata"]>): Forge {
  return (rows) => ({ groups: [rows], metadata });
}

const withBadStream = (line: string) => line.replace(/"stream":"[^"]*"/, '"stream":"š"');

/** How rows can be forged, and what each pass finds: both the same if the second is absent. */
const FORGERIES: [name: string, Forge, FailureCode | null, byChain?: FailureCode | null][] = [
  ["nothing", (rows) => ({ groups: [rows.slice(0, 3), rows.slice(3)] }), null],
  ["a payload", forgeLine(withPayload), null, "content_hash_mismatch"],
  [
    "a payload and its hash",
    forgeLine(withContent),
    "batch_commitment_mismatch",
    "event_hash_mismatch",
  ],
  [
    "a stream whose name is none",
    (rows) => ({ groups: [[...rows.slice(0, -1), changeLine(rows.at(-1)!, withBadStream)]] }),
    "segment_invalid",
    "event_hash_mismatch",
  ],
  ["two digests in one batch", (rows) => {
    const entry = { ...rows[0]!.entry, batch_digest: OTHER_HASH };
    return { groups: [[{ ...rows[0]!, entry }, ...rows.slice(1)]] };
  }, "segment_invalid"],
  ["a missing event", forgeOrder([1, 2, 3, 4, 5, 6, 7]), "batch_commitment_mismatch"],
  ["two events in each other's place", forgeOrder([0, 1, 3, 2, 4, 5, 6, 7]), "order_invalid"],
  ["two batches in each other's place", forgeOrder([0, 1, 4, 5, 2, 3, 6, 7]), "order_invalid"],
  [
    "two row groups in each other's place",
    (rows) => ({ groups: [rows.slice(4), rows.slice(0, 4)], metadata: idsOf(rows) }),
    "order_invalid",
  ],
  ["an event twice", forgeOrder([0, 0, 1, 2, 3, 4, 5, 6, 7]), "order_invalid"],
  [
    "a chain head before",
    forgeMetadata({ previous_head: OTHER_HASH }),
    null,
    "chain_head_mismatch",
  ],
  ["a chain head after", forgeMetadata({ head: OTHER_HASH }), null, "chain_head_mismatch"],
  ["the number of batches", forgeMetadata({ batches: 5 }), "segment_invalid"],
  [
    "the first event",
    (rows) => forgeMetadata({ first_event_id: idsOf(rows.slice(1)).first_event_id })(rows),
    "segment_invalid",
  ],
  [
    "the counts of streams",
    forgeStreams((entries) => changed(entries, isStream, { events: 9 })),
    "segment_invalid",
  ],
  ["the order of streams", forgeStreams((entries) => entries.toReversed()), "segment_invalid"],
  [
    "the last event of a source",
    forgeStreams((entries) => changed(entries, isSource, { lastEventId: entries[2]!.lastEventId })),
    "segment_invalid",
  ],
  [
    "a source that is left out",
    forgeStreams((entries) => entries.filter(isStream)),
    "segment_invalid",
  ],
  [
    "a filter that leaves a key out",
    forgeIndex({ key_filter: buildKeyFilter([]) }),
    "segment_invalid",
  ],
  [
    "a filter that lets all pass",
    forgeIndex({ key_filter: fullFilter() }),
    "segment_invalid",
  ],
];

/** A key filter of one page, all of whose bits are set. */
function fullFilter(): Buffer {
  const page = Buffer.alloc(KEY_PAGE_BYTES, 0xff);
  page.writeUInt32LE(crc32(page.subarray(0, -4)), KEY_PAGE_BYTES - 4);
  return page;
}

function isSource({ key }: StreamEntry): boolean {
  return isSourceKey(key);
}

function isStream({ key }: StreamEntry): boolean {
  return !isSourceKey(key);
}

/** The entries with another first one of those that are `wanted`. */
function changed(
  entries: StreamEntry[],
  wanted: (entry: StreamEntry) => boolean,
  change: Partial<StreamEntry>,
): StreamEntry[] {
  const place = entries.findIndex(wanted);
  return entries.with(place, { ...entries[place]!, ...change });
}

function idsOf(rows: ForgedRow[]): { first_event_id: string; last_event_id: string } {
  const ids = rows.map(({ line }) => JSON.parse(line.toString()).event_id as string);
  return { first_event_id: ids[0]!, last_event_id: ids.at(-1)! };
}

test("verifySegment() finds forged rows behind a file hash that is right", async () => {
  for (const [name, forge, byDefault, byChain = byDefault] of FORGERIES) {
    const { storage, entry } = await forgeSegment(forge(someRows()));
    assert.equal(await findFailure(storage, [entry], DEFAULT), byDefault, name);
    assert.equal(await findFailure(storage, [entry], CHAIN), byChain, name);
  }
});

test("verifySegment() finds Parquet files that are no segments", async () => {
  const table = Table.fromIPCStream(tableToIPC(tableFromArrays({ n: [1, 2, 3] }), "stream"));
  const files = [
    writeParquet(table),
    fileOfAnotherSchema(),
    Buffer.from("PAR1"),
    Buffer.alloc(5000),
  ];
  for (const bytes of files) {
    const storage = new SimulatedDisk(new Map([["0.parquet", bytes]]));
    const { segments: [entry] } = await sealCommits([smallBatches(3)]);
    const repaired = { ...entry!, ...fileFacts(storage) };
    assert.equal(await findFailure(storage, [repaired], DEFAULT), "segment_invalid");
  }
});

/** Ends as a segment does, CRC-32 and all. */
function fileOfAnotherSchema(): Buffer {
  const footer = encodeFooter({
    version: 2,
    schema: [{ name: "root", num_children: 1 }, { name: "n", type: "INT64" }],
    num_rows: 0,
    row_groups: [],
    key_value_metadata: [{ key: "key", value: "value" }],
    created_by: "somebody else",
    column_orders: [{ TYPE_ORDER: {} }],
  });
  return Buffer.concat([Buffer.from("PAR1 "), footer]);
}

test("VerifyFailure tells the file, the event, and the values that disagree", async () => {
  const [row, ...rest] = someRows();
  const forged = changeLine(row!, withPayload);
  const { storage, entry } = await forgeSegment({ groups: [[forged, ...rest]] });
  await assert.rejects(verifySegment(storage, entry, new HistoryCheck(CHAIN)), (error) => {
    assert.ok(error instanceof VerifyFailure);
    assert.deepEqual(error.detail, {
      path: "0.parquet",
      eventId: idsOf([row!]).first_event_id,
      expected: sha256Hex("null"),
      found: sha256Hex("1"),
    });
    return true;
  });
});

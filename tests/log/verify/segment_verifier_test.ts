import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { ParquetWriter } from "hyparquet-writer";
import { FileWriter } from "../../../src/log/segment/file_writer.ts";
import type { StreamEntry } from "../../../src/log/read/stream_counts.ts";
import { isSourceKey } from "../../../src/log/index/stream_blocks.ts";
import type { ExpectedSegment } from "../../../src/log/segment/segment_metadata.ts";
import { checkSegment } from "../../../src/log/verify/segment_verifier.ts";
import type { FailureCode } from "../../../src/log/storage/errors.ts";
import {
  describeRows,
  fileFacts,
  type ForgedRow,
  type Forgery,
  forgeSegment,
} from "../../support/forged_segment.ts";
import { type IndexChange, rewriteIndex } from "../../support/forged_index.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { pendingFile, sealCommits, smallBatches, splitLines } from "../../support/test_segment.ts";

/** The failure that `checkSegment()` finds, or null. */
async function findFailure(
  storage: SimulatedDisk,
  entry: ExpectedSegment,
  options: { chain: boolean },
): Promise<FailureCode | null> {
  const { failure } = await checkSegment(storage, entry, options.chain);
  assert.equal(storage.openFiles, 0);
  return failure?.code ?? null;
}

const OTHER_HASH = "a".repeat(64);

test("checkSegment() reports a manifest that disagrees with the footer", async () => {
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
    const found = await findFailure(storage, { ...entry!, ...change }, { chain: false });
    assert.equal(found, "segment_invalid", JSON.stringify(change));
  }
});

/** Four batches of two events each in four streams, as rows. */
async function someRows(): Promise<ForgedRow[]> {
  const batches = ["a", "b", "c", "d"].map((batchId) =>
    preparedBatch(batchId, { events: [{ stream: `s${batchId}`, recordKey: batchId }, {}] })
  );
  const { lines, entries } = await pendingFile([batches]);
  return splitLines(lines).map((line, n) => ({ line, entry: entries[n >> 1]! }));
}

type Forge = (rows: ForgedRow[]) => Forgery | Promise<Forgery>;

/** Forges the index of a segment with the rows. */
function forgeIndex(change: IndexChange): Forge {
  return async (rows) => {
    const { index } = await describeRows([rows]);
    return { groups: [rows], index: await rewriteIndex(index, change) };
  };
}

function forgeStreams(streams: NonNullable<IndexChange["streams"]>): Forge {
  return forgeIndex({ streams });
}

function forgeMetadata(metadata: NonNullable<Forgery["metadata"]>): Forge {
  return (rows) => ({ groups: [rows], metadata });
}

/** Changes the name of the last event's stream to one that the rules forbid. */
function withBadStream(rows: ForgedRow[]): ForgedRow[] {
  const { line, entry } = rows.at(-1)!;
  const bad = line.toString().replace(/"stream":"[^"]*"/, '"stream":"š"');
  return [...rows.slice(0, -1), { line: Buffer.from(bad), entry }];
}

type Found = FailureCode | null;

/** The failures found with and without the chain, and the forgeries that cause them. */
const FORGERIES: [byDefault: Found, byChain: Found, forgeries: Record<string, Forge>][] = [
  [null, null, { nothing: (rows) => ({ groups: [rows.slice(0, 3), rows.slice(3)] }) }],
  ["segment_invalid", "event_hash_mismatch", {
    "an invalid stream name": (rows) => ({ groups: [withBadStream(rows)] }),
  }],
  ["order_invalid", "order_invalid", {
    "two swapped row groups": (rows) => ({
      groups: [rows.slice(4), rows.slice(0, 4)],
      metadata: idsOf(rows),
    }),
  }],
  [null, "chain_head_mismatch", {
    "the previous chain head": forgeMetadata({ previous_head: OTHER_HASH }),
    "the chain head": forgeMetadata({ head: OTHER_HASH }),
  }],
  ["segment_invalid", "segment_invalid", {
    "two digests in one batch": ([first, ...rest]) => {
      const entry = { ...first!.entry, batch_digest: OTHER_HASH };
      return { groups: [[{ ...first!, entry }, ...rest]] };
    },
    "the number of batches": forgeMetadata({ batches: 5 }),
    "the first event": (rows) => ({
      groups: [rows],
      metadata: { first_event_id: idsOf(rows.slice(1)).first_event_id },
    }),
    "stream counts": forgeStreams((entries) => changed(entries, isStream, { events: 9 })),
    "two streams with swapped counts": forgeStreams((entries) => {
      const [first, second, ...rest] = entries as [StreamEntry, StreamEntry];
      return [{ ...second, key: first.key }, { ...first, key: second.key }, ...rest];
    }),
    "the last event of a source": forgeStreams((entries) =>
      changed(entries, isSource, { lastEventId: entries[2]!.lastEventId })
    ),
    "an omitted source": forgeStreams((entries) => entries.filter(isStream)),
    "an omitted batch": forgeIndex({ identities: (entries) => entries.slice(1) }),
    "an omitted key": forgeIndex({ locations: (entries) => entries.slice(1) }),
    "a batch that does not exist": forgeIndex({
      identities: (entries) => BigUint64Array.of(...entries, 2n ** 64n - 1n),
    }),
  }],
];

function isSource({ key }: StreamEntry): boolean {
  return isSourceKey(key);
}

function isStream({ key }: StreamEntry): boolean {
  return !isSourceKey(key);
}

/** Changes the first entry for which `wanted` is true. */
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

for (const [byDefault, byChain, forgeries] of FORGERIES) {
  for (const [name, forge] of Object.entries(forgeries)) {
    test(`checkSegment() reports forged rows despite a valid file hash: ${name}`, async () => {
      const { storage, entry } = await forgeSegment(await forge(await someRows()));
      assert.equal(await findFailure(storage, entry, { chain: false }), byDefault);
      assert.equal(await findFailure(storage, entry, { chain: true }), byChain);
    });
  }
}

test("checkSegment() rejects Parquet files that are not segments", async () => {
  const { segments: [entry] } = await sealCommits([smallBatches(3)]);
  for (const bytes of [await fileOfAnotherSchema(), Buffer.from("PAR1")]) {
    const storage = new SimulatedDisk(new Map([["0.parquet", bytes]]));
    const repaired = { ...entry!, ...fileFacts(storage) };
    assert.equal(await findFailure(storage, repaired, { chain: false }), "segment_invalid");
  }
});

/** A file that ends like a segment, with a valid CRC-32. */
async function fileOfAnotherSchema(): Promise<Buffer> {
  const storage = new SimulatedDisk();
  const file = await storage.open("0.parquet", "create");
  const parquet = new ParquetWriter({
    writer: new FileWriter(file),
    schema: [{ name: "root", num_children: 1 }, { name: "n", type: "INT64" }],
    kvMetadata: [{ key: "key", value: "value" }],
  });
  await parquet.finish();
  await file.close();
  return storage.contents("0.parquet");
}

/** Writes segments that the service never would: arbitrary rows, order and metadata. */
import { createHash } from "node:crypto";
import type { Buffer } from "node:buffer";
import { HistoryChain } from "../../src/event/chain.ts";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import { type BuiltIndexes, SegmentIndex } from "../../src/log/segment/segment_index.ts";
import type { EventFacts, IndexRecord } from "../../src/log/segment/segment_metadata.ts";
import { RowGroupWriter } from "../../src/log/segment/row_group_writer.ts";
import { RowGroupRows } from "../../src/log/segment/segment_rows.ts";
import { FileWriter } from "../../src/log/segment/file_writer.ts";
import type { ExpectedSegment } from "../../src/log/segment/segment_metadata.ts";
import { StoredEvent } from "../../src/log/line/stored_event.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

/** A row to write. */
export interface ForgedRow {
  /** The event line, including its LF. */
  line: Buffer;
  entry: BatchEntry;
}

export interface Forgery {
  /** The rows in each row group. */
  groups: ForgedRow[][];
  /** Overrides the correct metadata in the footer and manifest. */
  metadata?: Partial<EventFacts>;
  /** Overrides the correct streams, sources and keys in the index. */
  index?: Partial<IndexRecord<Buffer>>;
}

export interface ForgedSegment {
  storage: SimulatedDisk;
  /** The manifest entry, with the hash of the file. */
  entry: ExpectedSegment;
}

export async function forgeSegment({ groups, metadata, index }: Forgery): Promise<ForgedSegment> {
  const storage = new SimulatedDisk();
  const file = await storage.open("0.parquet", "create");
  const writer = new RowGroupWriter(new FileWriter(file));
  const rows = new RowGroupRows();
  const event = new StoredEvent();
  for (const group of groups) {
    for (const { line, entry } of group) {
      event.take(line, 0, line.length - 1);
      rows.add(event, entry);
    }
    await writer.write(rows);
    rows.clear();
  }
  const described = describeRows(groups);
  const facts = { ...described.facts, ...metadata };
  const { indexes, rowFilterBytes } = described.built;
  await writer.finish(facts, { indexes: { ...indexes, ...index }, rowFilterBytes });
  await file.close();
  return { storage, entry: { path: "0.parquet", ...facts, ...fileFacts(storage) } };
}

/** The actual size and hash of the file. */
export function fileFacts(storage: SimulatedDisk): Pick<ExpectedSegment, "bytes" | "sha256"> {
  const bytes = storage.contents("0.parquet");
  return { bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** The correct metadata and indexes of a segment with these row groups. */
export function describeRows(groups: ForgedRow[][]): { facts: EventFacts; built: BuiltIndexes } {
  const chain = new HistoryChain();
  const previous_head = chain.head;
  const index = new SegmentIndex();
  const ids: string[] = [];
  const known = new Set<BatchEntry>();
  for (const group of groups) {
    for (const entry of new Set(group.map((row) => row.entry))) {
      index.addBatch(entry.source, entry.batch_id, !known.has(entry));
      known.add(entry);
    }
    const events = group.map(({ line }) => JSON.parse(line.toString()));
    for (const { event_id, source, stream, event_hash } of events) {
      chain.append(event_hash);
      index.addEvents(source, stream, 1, event_id);
      ids.push(event_id);
    }
    index.endRowGroup((column) => events.map((event) => event[column]));
  }
  const facts = {
    events: ids.length,
    batches: known.size,
    first_event_id: ids[0]!,
    last_event_id: ids.at(-1)!,
    previous_head,
    head: chain.head,
  };
  return { facts, built: index.finish() };
}

/** Writes segments that the service never would: arbitrary rows, order and metadata. */
import { createHash } from "node:crypto";
import type { Buffer } from "node:buffer";
import { GENESIS_HEAD_HEX, nextHead } from "../../src/event/chain.ts";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import { IndexBuilder } from "../../src/log/index/index_writer.ts";
import type { EventFacts, ExpectedSegment } from "../../src/log/segment/segment_metadata.ts";
import { RowGroupWriter } from "../../src/log/segment/segment_writer.ts";
import { RowGroupRows } from "../../src/log/segment/segment_rows.ts";
import { FileWriter } from "../../src/log/segment/file_writer.ts";
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
  /** Replaces the correct index. */
  index?: Buffer;
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
  const event = new StoredEvent();
  for (const group of groups) {
    const rows = new RowGroupRows();
    for (const { line, entry } of group) {
      event.take(line, 0, line.length - 1);
      rows.add(event, entry);
    }
    await writer.write(rows);
  }
  const described = await describeRows(groups);
  const facts = { ...described.facts, ...metadata };
  await writer.finish(facts, index ?? described.index);
  await file.close();
  return { storage, entry: { path: "0.parquet", ...facts, ...fileFacts(storage) } };
}

/** The actual size and hash of the file. */
export function fileFacts(storage: SimulatedDisk): Pick<ExpectedSegment, "bytes" | "sha256"> {
  const bytes = storage.contents("0.parquet");
  return { bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** The correct metadata and index of a segment with these rows. */
export async function describeRows(
  groups: ForgedRow[][],
): Promise<{ facts: EventFacts; index: Buffer }> {
  let head = GENESIS_HEAD_HEX;
  const index = new IndexBuilder();
  const entries = new Set<BatchEntry>();
  const ids: string[] = [];
  for (const group of groups) {
    for (const { line, entry } of group) {
      const { event_id, source, stream, record_key, kind, event_hash } = JSON.parse(
        line.toString(),
      );
      head = nextHead(head, event_hash);
      if (!entries.has(entry)) index.addBatch(entry.source, entry.batch_id);
      entries.add(entry);
      index.addEvent(source, { stream, recordKey: record_key, kind }, event_id);
      ids.push(event_id);
    }
    index.endRowGroup();
  }
  const facts = {
    events: ids.length,
    batches: entries.size,
    first_event_id: ids[0]!,
    last_event_id: ids.at(-1)!,
    previous_head: GENESIS_HEAD_HEX,
    head,
  };
  return { facts, index: await index.finish() };
}

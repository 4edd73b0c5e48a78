/** A log with files of every kind, and the byte ranges in which a test flips bits. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { ROW_GROUP_EVENTS_MAX } from "../../../src/limits.ts";
import { parseThrift } from "../../../src/log/parquet/thrift.ts";
import { MANIFEST_FILE } from "../../../src/log/storage/file_names.ts";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { rotateOnly, sealAll } from "../../support/sealing.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { lineageMarker, submit, type SubmittedBatch } from "../../support/submitted.ts";
import { openSegment } from "../../support/test_segment.ts";
import { openTestService } from "../../support/test_service.ts";

const LF = 0x0a;
const MAGIC_BYTES = 4;
const TRAILER_BYTES = 8;
const FOOTER_CRC_BYTES = 4;
/** A field of PageHeader in parquet.thrift. */
const COMPRESSED_PAGE_SIZE = 3;
const TEXTS = ["Zoë", "東京 😀", 'a"b\\c\n\u0001', "plain"];

export interface AlteredLog {
  tree: Tree;
  /** Every committed batch, as submitted. */
  batches: SubmittedBatch[];
  /** The retired sources: the first retirement is in a segment, the second in the tail. */
  retired: string[];
}

/** A log with three segments (one has two row groups), two pending files and a tail. */
export async function buildAlteredLog(): Promise<AlteredLog> {
  const storage = new SimulatedDisk();
  const batches: SubmittedBatch[] = [];
  const part = async (run: (service: EventLogService) => Promise<void>) => {
    const { service } = await openTestService(storage);
    await run(service);
    await service.close();
  };
  const commit = async (service: EventLogService, batch: SubmittedBatch) => {
    batches.push(batch);
    const { status, body } = await submit(service, batch);
    assert.equal(status, 200, JSON.stringify(body));
  };
  /** Submits several batches at a time, so that they share commits. */
  const fill = async (service: EventLogService, name: string, count: number, payload: number) => {
    for (let number = 0; number < count; number += 5) {
      await Promise.all(
        [0, 1, 2, 3, 4].map((n) =>
          commit(service, batchOf(`${name}-${number + n}`, 1 + (number + n) % 4, payload))
        ),
      );
    }
  };
  await part(async (service) => {
    await commit(service, { ...batchOf("old-1", 2), source: "old" });
    const { final_frontier } = await service.retire("old");
    const first = { ...batchOf("heir-1", 2), source: "heir" };
    first.events.unshift(lineageMarker("old", final_frontier));
    await commit(service, first);
    await commit(service, batchOf("large", ROW_GROUP_EVENTS_MAX + 100, 30));
  });
  await sealAll(storage);
  await part((service) => fill(service, "sealed", 10, 200));
  await sealAll(storage, { events: 3, bytes: Infinity });
  await part((service) => fill(service, "pending", 60, 500));
  await rotateOnly(storage);
  await part((service) => fill(service, "next", 10, 100));
  await rotateOnly(storage);
  await part(async (service) => {
    await fill(service, "tail", 60, 500);
    await commit(service, { ...batchOf("late-1", 1), source: "late" });
    await service.retire("late");
  });
  return { tree: storage.tree(), batches, retired: ["old", "late"] };
}

function batchOf(batchId: string, count: number, payloadBytes = 100): SubmittedBatch {
  const events = Array.from({ length: count }, (_, place) => ({
    stream: `s-${place % 5}`,
    record_key: `${TEXTS[place % TEXTS.length]} ${(batchId.length + place) % 7}`,
    kind: place % 3 === 0 ? "deleted" : "upserted",
    ...(place % 2 === 0 && { occurred_at: "2025-12-31T23:59:59.5Z" }),
    payload: { batchId, place, text: `${place} `.repeat(payloadBytes / 2).slice(0, payloadBytes) },
  }));
  const source = batchId.length % 2 === 0 ? "shop" : "crm";
  return { source, batch_id: batchId, events };
}

/** The byte range [start, end) in a file. */
export interface Place {
  path: string;
  start: number;
  end: number;
}

/** The byte ranges in a log, keyed by the kind of their contents. */
export async function placesOf(tree: Tree): Promise<Map<string, Place[]>> {
  const places = new Map<string, Place[]>();
  const add = (kind: string, path: string, start: number, end: number) => {
    if (start < end) places.set(kind, [...places.get(kind) ?? [], { path, start, end }]);
  };
  for (const [path, bytes] of tree) {
    if (bytes === null || bytes.length === 0) continue;
    const whole = Buffer.from(bytes);
    if (path === MANIFEST_FILE) add("manifest", path, 0, whole.length);
    else if (path.endsWith(".ndjson")) addLines(path, whole, add);
    else if (path.endsWith(".parquet")) await addSegment(path, whole, tree, add);
  }
  return places;
}

type AddPlace = (kind: string, path: string, start: number, end: number) => void;

function addLines(path: string, bytes: Buffer, add: AddPlace): void {
  const file = path.startsWith("pending/") ? "pending" : "tail";
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(LF, start) + 1;
    const isHeader = bytes.toString("latin1", start, start + 10) === '{"commit":';
    add(`${file} ${isHeader ? "header" : "event"}`, path, start, end);
    start = end;
  }
}

async function addSegment(path: string, bytes: Buffer, tree: Tree, add: AddPlace): Promise<void> {
  const segment = openSegment(new SimulatedDisk(tree), path);
  for (const { columns } of await segment.rowGroups()) {
    for (const { start, end } of columns) {
      for (let at = start; at < end;) {
        const { struct: header, end: headerEnd } = parseThrift(bytes, at);
        const pageEnd = headerEnd + Number(header.get(COMPRESSED_PAGE_SIZE));
        add("page header", path, at, headerEnd);
        add("page", path, headerEnd, pageEnd);
        at = pageEnd;
      }
    }
  }
  const { start, end } = (await segment.footer()).index;
  const open = await segment.index.open();
  const starts = [0, open.identitiesStart, open.filterStart, open.locationsStart];
  const ends = [...starts.slice(1), open.directoriesStart];
  const names = ["stream block", "identity page", "key filter", "location page"];
  names.forEach((name, place) => add(name, path, start + starts[place]!, start + ends[place]!));
  add("index trailer", path, start + open.directoriesStart, end);
  const trailerStart = bytes.length - TRAILER_BYTES;
  const footerStart = trailerStart - bytes.readUInt32LE(trailerStart);
  add("Bloom filter", path, end, footerStart - FOOTER_CRC_BYTES);
  add("footer", path, footerStart, trailerStart);
  add("trailer", path, trailerStart, bytes.length);
  add("footer CRC-32", path, footerStart - FOOTER_CRC_BYTES, footerStart);
  add("magic bytes", path, 0, MAGIC_BYTES);
  await segment.close();
}

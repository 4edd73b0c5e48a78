/** Violates each rule of the order monitor once. All other tests must follow the rules. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { StorageFile } from "../../src/log/storage/storage.ts";
import {
  MANIFEST_FILE,
  MANIFEST_TEMPORARY_FILE,
  SEGMENT_TEMPORARY_FILE,
  TAIL_FILE,
} from "../../src/log/storage/file_names.ts";
import { OrderMonitor, OrderViolation } from "./order_monitor.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

const FIRST = "019b76da-a800-7001-8203-040506070801";
const LAST = "019b76da-a800-7001-8203-040506070809";
const PENDING = `pending/${FIRST}_${LAST}.ndjson`;
const SEGMENT = `segments/${FIRST}_${LAST}_${"0".repeat(64)}.parquet`;
const COVERING = JSON.stringify({ segments: [{ path: SEGMENT, last_event_id: LAST }] });
const HEADER = `{"commit":{"batches":[{"first_event_id":"${FIRST}","last_event_id":"${LAST}"}]}}\n`;

/** Creates a file with these bytes, without a sync. */
async function write(monitor: OrderMonitor, path: string, text: string): Promise<StorageFile> {
  const file = await monitor.open(path, "create");
  await file.write(Buffer.from(text), 0);
  return file;
}

async function writeSynced(monitor: OrderMonitor, path: string, text: string) {
  const file = await write(monitor, path, text);
  await file.sync();
  return file;
}

async function putManifest(monitor: OrderMonitor, text: string): Promise<void> {
  await writeSynced(monitor, MANIFEST_TEMPORARY_FILE, text);
  await monitor.rename(MANIFEST_TEMPORARY_FILE, MANIFEST_FILE);
}

const isNew = true;

type Use = (monitor: OrderMonitor) => Promise<unknown>;

/** One violation of each rule. `found` matches the message, and `files` exist beforehand. */
const BROKEN: [rule: string, found: RegExp, use: Use, files?: string[]][] = [
  ["a receipt before the sync of its bytes", /before the tail is synced/, async (m) => {
    await write(m, TAIL_FILE, HEADER);
    await m.syncFolder(".");
    m.receipt(LAST, { isNew });
  }],
  ["a receipt while the sync is in progress", /before the tail is synced/, async (m) => {
    const synced = (await write(m, TAIL_FILE, HEADER)).sync();
    try {
      m.receipt(LAST, { isNew });
    } finally {
      await synced;
    }
  }],
  ["a receipt for bytes that were not written", /was not written/, async (m) => {
    await writeSynced(m, TAIL_FILE, "\n");
    await m.syncFolder(".");
    m.receipt(LAST, { isNew });
  }],
  ["a receipt before the sync of the tail's name", /before the name tail/, async (m) => {
    await writeSynced(m, TAIL_FILE, HEADER);
    m.receipt(LAST, { isNew });
  }],
  ["an event read before its sync", /is read before its sync/, async (m) => {
    await write(m, TAIL_FILE, HEADER);
    m.reading(Buffer.from(`{"event_id":"${LAST}"}`));
  }],
  ["a rename before the sync of the file", /before its bytes are synced/, async (m) => {
    await write(m, MANIFEST_TEMPORARY_FILE, "{}");
    await m.rename(MANIFEST_TEMPORARY_FILE, MANIFEST_FILE);
  }],
  ["removal of a pending file that no manifest covers", /no manifest covers/, async (m) => {
    await putManifest(m, '{"segments":[]}');
    await m.remove(PENDING);
  }, [PENDING]],
  [
    "removal of a pending file before the manifest's name is synced",
    /before manifest/,
    async (m) => {
      await putManifest(m, COVERING);
      await m.remove(PENDING);
    },
    [PENDING],
  ],
  [
    "removal of a pending file before its segment's name is synced",
    /before segments/,
    async (m) => {
      await writeSynced(m, SEGMENT_TEMPORARY_FILE, "PAR1");
      await m.rename(SEGMENT_TEMPORARY_FILE, SEGMENT);
      await putManifest(m, COVERING);
      await m.syncFolder(".");
      await m.remove(PENDING);
    },
    [PENDING],
  ],
  ["removal of a listed segment", /no pending file contains/, async (m) => {
    await putManifest(m, COVERING);
    await m.list("pending");
    await m.remove(SEGMENT);
  }, [SEGMENT, PENDING]],
  ["removal of the only copy of a segment's events", /no pending file contains/, async (m) => {
    await m.list("pending");
    await m.remove(SEGMENT);
  }, [SEGMENT]],
  ["removal of the tail", /is removed/, (m) => m.remove(TAIL_FILE), [TAIL_FILE]],
  ["a segment opened for writing", /opened for/, (m) => m.open(SEGMENT, "write"), [
    SEGMENT,
  ]],
  ["a write to a rotated tail", /pending.* is written to/, async (m) => {
    const tail = await m.open(TAIL_FILE, "write");
    await tail.sync();
    await m.rename(TAIL_FILE, PENDING);
    await tail.write(Buffer.from(HEADER), 0);
  }, [TAIL_FILE]],
  ["an overwrite of synced bytes", /overwritten/, async (m) => {
    await (await writeSynced(m, TAIL_FILE, HEADER)).write(Buffer.from(HEADER), 1);
  }],
  ["a truncation of synced bytes", /bytes are truncated/, async (m) => {
    await (await writeSynced(m, TAIL_FILE, HEADER)).truncate(HEADER.length - 1);
  }],
  ["a retry of a failed sync", /after a failed sync/, async (m) => {
    const file = await write(m, "failing", HEADER);
    await assert.rejects(file.sync(), /EIO/);
    await file.sync();
  }],
];

for (const [rule, found, use, files = []] of BROKEN) {
  test(`OrderMonitor reports ${rule}`, async () => {
    const empty = files.map((path): [string, Uint8Array] => [path, Buffer.alloc(0)]);
    const disk = new SimulatedDisk(new Map([["pending", null], ["segments", null], ...empty]));
    disk.hook = ({ kind, path }) => kind === "sync" && path === "failing" ? { errno: "EIO" } : null;
    const monitor = new OrderMonitor(disk, (what) => {
      throw new OrderViolation(what);
    });
    await assert.rejects(use(monitor), (error) => {
      return error instanceof OrderViolation && found.test(error.message);
    });
  });
}

/** Each rule of the monitor on a storage that is used against it; all other tests keep to them. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
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
const HEADER = Buffer.from(
  `{"commit":{"batches":[{"first_event_id":"${FIRST}","last_event_id":"${LAST}"}]}}\n`,
);

type Use = (monitor: OrderMonitor, disk: SimulatedDisk) => Promise<void>;

/** What the monitor finds in `use`; null for nothing. */
async function violationOf(use: Use, files: Record<string, string> = {}): Promise<string | null> {
  const disk = new SimulatedDisk(
    new Map([
      ["pending", null],
      ["segments", null],
      ...Object.entries(files).map(([path, text]) => [path, Buffer.from(text)] as const),
    ]),
  );
  const monitor = new OrderMonitor(disk, (what) => {
    throw new OrderViolation(what);
  });
  try {
    await use(monitor, disk);
    return null;
  } catch (error) {
    assert.ok(error instanceof OrderViolation, String(error));
    return error.message;
  }
}

async function writeSynced(monitor: OrderMonitor, path: string, bytes: Uint8Array): Promise<void> {
  const file = await monitor.open(path, "create");
  await file.write(bytes, 0);
  await file.sync();
  await file.close();
}

async function putManifest(monitor: OrderMonitor, text: string): Promise<void> {
  await writeSynced(monitor, MANIFEST_TEMPORARY_FILE, Buffer.from(text));
  await monitor.rename(MANIFEST_TEMPORARY_FILE, MANIFEST_FILE);
  await monitor.syncFolder(".");
}

async function putSegment(monitor: OrderMonitor): Promise<void> {
  await writeSynced(monitor, SEGMENT_TEMPORARY_FILE, Buffer.from("PAR1"));
  await monitor.rename(SEGMENT_TEMPORARY_FILE, SEGMENT);
}

async function listPending(monitor: OrderMonitor): Promise<void> {
  await monitor.list("pending");
}

const receiptOfAll = (monitor: OrderMonitor) => monitor.receipt(LAST, { isNew: true });

/** What breaks a rule, with a part of what the monitor says. */
const BROKEN: [rule: string, found: RegExp, use: Use, files?: Record<string, string>][] = [
  ["a receipt before the sync of its bytes", /before the tail is synced/, async (monitor) => {
    const tail = await monitor.open(TAIL_FILE, "create");
    await tail.write(HEADER, 0);
    await monitor.syncFolder(".");
    receiptOfAll(monitor);
  }],
  ["a receipt while the sync is under way", /before the tail is synced/, async (monitor) => {
    const tail = await monitor.open(TAIL_FILE, "create");
    await monitor.syncFolder(".");
    await tail.write(HEADER, 0);
    const synced = tail.sync();
    for (let turns = 0; turns < 20; turns++) await Promise.resolve();
    try {
      receiptOfAll(monitor);
    } finally {
      await synced;
    }
  }],
  ["a receipt of a recovered tail that was not synced", /before the tail is synced/, async (m) => {
    await m.open(TAIL_FILE, "write");
    m.receipt(LAST, { isNew: false });
  }, { [TAIL_FILE]: HEADER.toString() }],
  ["a receipt of bytes that were not written", /was not written/, async (monitor) => {
    await writeSynced(monitor, TAIL_FILE, Buffer.from("\n"));
    await monitor.syncFolder(".");
    receiptOfAll(monitor);
  }],
  ["a receipt before the sync of the tail's name", /before the name tail/, async (monitor) => {
    await writeSynced(monitor, TAIL_FILE, HEADER);
    receiptOfAll(monitor);
  }],
  ["an event that is read before its sync", /is read before its sync/, async (monitor) => {
    const tail = await monitor.open(TAIL_FILE, "create");
    await tail.write(HEADER, 0);
    monitor.reading(Buffer.from(`{"event_id":"${LAST}"}`));
  }],
  ["a rename before the sync of what is renamed", /before its bytes are synced/, async (m) => {
    const file = await m.open(MANIFEST_TEMPORARY_FILE, "create");
    await file.write(Buffer.from("{}"), 0);
    await m.rename(MANIFEST_TEMPORARY_FILE, MANIFEST_FILE);
  }],
  [
    "a rename of a tail that was opened and not synced",
    /before its bytes are synced/,
    async (m) => {
      await m.open(TAIL_FILE, "write");
      await m.rename(TAIL_FILE, PENDING);
    },
    { [TAIL_FILE]: "" },
  ],
  ["a pending file that goes before any manifest covers it", /no manifest covers/, async (m) => {
    await putManifest(m, '{"segments":[]}');
    await m.remove(PENDING);
  }, { [PENDING]: "" }],
  [
    "a pending file that goes before the manifest's name is synced",
    /before manifest/,
    async (m) => {
      await writeSynced(m, MANIFEST_TEMPORARY_FILE, Buffer.from(COVERING));
      await m.rename(MANIFEST_TEMPORARY_FILE, MANIFEST_FILE);
      await m.remove(PENDING);
    },
    { [PENDING]: "" },
  ],
  ["a pending file that goes before its segment's name is synced", /before segments/, async (m) => {
    await putSegment(m);
    await putManifest(m, COVERING);
    await m.remove(PENDING);
  }, { [PENDING]: "" }],
  ["a segment that goes and is listed", /no pending file holds/, async (monitor) => {
    await putManifest(monitor, COVERING);
    await listPending(monitor);
    await monitor.remove(SEGMENT);
  }, { [SEGMENT]: "", [PENDING]: "" }],
  ["a segment that goes and is all there is of its events", /no pending file holds/, async (m) => {
    await listPending(m);
    await m.remove(SEGMENT);
  }, { [SEGMENT]: "" }],
  ["a tail that goes", /is removed/, (monitor) => monitor.remove(TAIL_FILE), { [TAIL_FILE]: "" }],
  ["a manifest that goes", /is removed/, (m) => m.remove(MANIFEST_FILE), { [MANIFEST_FILE]: "" }],
  ["a pending file that is opened for writing", /opened to be written/, async (monitor) => {
    await monitor.open(PENDING, "write");
  }, { [PENDING]: "" }],
  ["a segment that is opened for writing", /opened to be written/, async (monitor) => {
    await monitor.open(SEGMENT, "write");
  }, { [SEGMENT]: "" }],
  ["a tail that is written to after its rotation", /pending.* is written to/, async (monitor) => {
    const tail = await monitor.open(TAIL_FILE, "write");
    await tail.sync();
    await monitor.rename(TAIL_FILE, PENDING);
    await tail.write(HEADER, 0);
  }, { [TAIL_FILE]: "" }],
  ["synced bytes that are overwritten", /overwritten/, async (monitor) => {
    const tail = await monitor.open(TAIL_FILE, "create");
    await tail.write(HEADER, 0);
    await tail.sync();
    await tail.write(HEADER, 1);
  }],
  ["synced bytes that are cut off", /cut off/, async (monitor) => {
    const tail = await monitor.open(TAIL_FILE, "create");
    await tail.write(HEADER, 0);
    await tail.sync();
    await tail.truncate(HEADER.length - 1);
  }],
  ["a sync that is tried again", /after a sync that failed/, async (monitor, disk) => {
    const tail = await monitor.open(TAIL_FILE, "create");
    disk.hook = ({ kind }) => kind === "sync" ? { errno: "EIO" } : null;
    await assert.rejects(tail.sync(), /EIO/);
    await tail.sync();
  }],
];

for (const [rule, found, use, files] of BROKEN) {
  test(`OrderMonitor finds ${rule}`, async () => {
    assert.match(await violationOf(use, files) ?? "nothing", found);
  });
}

/** Scanning an unsealed log for one record key misses no event and reads few blocks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Log } from "../../../src/log/log.ts";
import { EventScan } from "../../../src/log/read/event_scan.ts";
import { randomInteger, seededRandom, testSeed } from "../../../tools/support/random.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { joinPieces, openTestLog } from "../../support/test_log.ts";

const ODD_KEYS = [
  ...['a"b', '"', "back\\slash", "\\", "line\nfeed", "ü€𝄞", '","kind":"', "x".repeat(1024), " "],
];
const SEED = testSeed();
const COMMITS = 40;
const COMMIT_EVENTS = 100;

/** An unsealed log of a few MiB, and the payloads for each key in log order. */
async function filledLog(): Promise<
  { log: Log; disk: SimulatedDisk; byKey: Map<string, number[]> }
> {
  const disk = new SimulatedDisk();
  const { log } = await openTestLog(disk);
  const random = seededRandom(SEED);
  const byKey = new Map<string, number[]>();
  for (let commit = 0; commit < COMMITS; commit++) {
    const events = Array.from({ length: COMMIT_EVENTS }, (_, place) => {
      const number = commit * COMMIT_EVENTS + place;
      const isOdd = randomInteger(random, 0, 49) === 0;
      const recordKey = isOdd
        ? ODD_KEYS[randomInteger(random, 0, ODD_KEYS.length - 1)]!
        : `key ${number}`;
      byKey.set(recordKey, [...byKey.get(recordKey) ?? [], number]);
      return { recordKey, payload: [number, "x".repeat(randomInteger(random, 0, 1000))] };
    });
    await log.append([preparedBatch(`batch ${commit}`, { events })]);
  }
  return { log, disk, byKey };
}

function scanOf(log: Log, recordKey: string, after?: string): EventScan {
  const limits = { limitEvents: Infinity, limitBytes: Infinity };
  return new EventScan(log.snapshot, { after, filter: { recordKey }, ...limits });
}

async function numbersOf(scan: EventScan): Promise<number[]> {
  const events: { payload: [number] }[] = JSON.parse(`[${await joinPieces(scan)}]`);
  return events.map(({ payload }) => payload[0]);
}

test(`a scan for a key returns all its events, appended or recovered (SEED=${SEED})`, async () => {
  const { log, disk, byKey } = await filledLog();
  const { log: recovered } = await openTestLog(new SimulatedDisk(disk.tree()));
  for (const [key, numbers] of byKey) {
    for (const opened of [log, recovered]) {
      assert.deepEqual(await numbersOf(scanOf(opened, key)), numbers, key);
    }
  }
  for (const key of ["absent", "", "key", 'a\\"b']) {
    assert.deepEqual(await numbersOf(scanOf(recovered, key)), [], key);
  }
});

test("a scan for a key continues in the segments if the log is sealed during the scan", async () => {
  const { log, byKey } = await filledLog();
  const numbers = byKey.get(ODD_KEYS[0]!)!;
  const scan = scanOf(log, ODD_KEYS[0]!);
  const first = await scan.next();
  const found: number[] = JSON.parse(`[${first}]`).map(({ payload }: { payload: number[] }) =>
    payload[0]
  );
  assert.ok(found.length < numbers.length);
  await log.seal(() => {});
  assert.deepEqual([...found, ...await numbersOf(scan)], numbers);
});

/**
 * Readers whose snapshot refers to files that are then rotated and sealed. From any position, they
 * read the unchanged bytes to the end of the snapshot, and leave no file open.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { READ_CHUNK_BYTES } from "../../src/limits.ts";
import { ScanMemory } from "../../src/log/read/scan_memory.ts";
import type { Log } from "../../src/log/log.ts";
import { type LogSnapshot, readLines } from "../../src/log/read/snapshot.ts";
import { type EventFilter, isHeaderLine, lineEventId } from "../../src/log/line/stored_line.ts";
import { preparedBatch } from "../support/prepared.ts";
import { SealingSteps } from "../support/sealing_steps.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { gateAt } from "../support/storage_faults.ts";
import { openTestLog } from "../support/test_log.ts";

const LF = 0x0a;
const EVENTS = 3;
/** The record key of all events. */
const RECORD_KEY = "1";
/** A payload so large that each file takes several reads. */
const TEXT = "x".repeat(READ_CHUNK_BYTES / 4);

/** Moments at which a reader takes its snapshot of a file. */
const MOMENTS = ["while it is the tail", "when it is the complete tail", "when it is pending"];

/** A log whose sealing starts when the test calls `seal()`. */
async function openSteered(rotateBytes = 1) {
  const storage = new SimulatedDisk();
  const steps = new SealingSteps({ rotateBytes });
  let isHeld = true;
  steps.beforeMake = () => {
    if (isHeld) throw new Error("not yet");
  };
  const opened = await openTestLog(storage, steps.on());
  const seal = async () => {
    isHeld = false;
    const idle = steps.nextIdle(storage);
    steps.resume();
    await idle;
    isHeld = true;
  };
  return { storage, steps, seal, ...opened };
}

async function append(log: Log, batchId: string): Promise<void> {
  const events = Array.from({ length: EVENTS }, (_, n) => ({
    recordKey: RECORD_KEY,
    payload: `${batchId} ${n} ${TEXT}`,
  }));
  await log.append([preparedBatch(batchId, { events })]);
}

/** The event lines in a chunk that follow event `after`. */
function eventLines(chunk: Buffer, after: string): string[] {
  const lines: string[] = [];
  for (let start = 0; start < chunk.length;) {
    const end = chunk.indexOf(LF, start) + 1;
    if (!isHeaderLine(chunk, start) && lineEventId(chunk, start) > after) {
      lines.push(chunk.toString("utf8", start, end));
    }
    start = end;
  }
  return lines;
}

class Reader {
  readonly lines: string[] = [];
  readonly #chunks: AsyncGenerator<Buffer, void>;
  readonly #after: string;

  constructor(snapshot: LogSnapshot, after?: string, filter: EventFilter = {}) {
    const memory = new ScanMemory();
    const wanted = { after, filter, wantedBytes: () => 4096, memory };
    this.#chunks = readLines(snapshot.files, wanted);
    this.#after = after ?? "";
  }

  /** Reads up to `chunks` chunks, and overwrites each as callers may. @returns false at the end. */
  async take(chunks: number): Promise<boolean> {
    for (let n = 0; n < chunks; n++) {
      const { value: chunk } = await this.#chunks.next();
      if (chunk === undefined) return false;
      this.lines.push(...eventLines(chunk, this.#after));
      chunk.fill(0);
    }
    return true;
  }
}

/** Readers of a snapshot from the beginning and from each event, each paused after some chunks. */
async function readersOf(snapshot: LogSnapshot) {
  const all = new Reader(snapshot);
  await all.take(Infinity);
  const ids = all.lines.map((line) => lineEventId(Buffer.from(line), 0));
  const readers: { reader: Reader; expected: string[]; label: string }[] = [];
  for (const [place, after] of [undefined, ...ids].entries()) {
    for (const filter of [{}, { recordKey: RECORD_KEY }]) {
      for (let ahead = 0;; ahead++) {
        const reader = new Reader(snapshot, after, filter);
        const isGoingOn = await reader.take(ahead);
        const label = `after event ${place} of ${ids.length}, ${ahead} chunks ahead`;
        readers.push({ reader, expected: all.lines.slice(place), label });
        if (!isGoingOn) break;
      }
    }
  }
  return readers;
}

for (const [moment, name] of MOMENTS.entries()) {
  test(`a snapshot of a file, taken ${name}, survives sealing`, async () => {
    const rotateBytes = 2.5 * EVENTS * TEXT.length;
    const { log, storage, steps, seal, reports } = await openSteered(rotateBytes);
    for (const batchId of ["first", "second", "third"]) await append(log, batchId);
    const paused = steps.nextPause();
    await append(log, "a");
    await paused;
    await append(log, "b");
    const readers = moment === 0 ? await readersOf(log.snapshot) : [];
    await append(log, "c");
    if (moment === 1) readers.push(...await readersOf(log.snapshot));
    await seal();
    const pausedAgain = steps.nextPause();
    await append(log, "d");
    await pausedAgain;
    if (moment === 2) readers.push(...await readersOf(log.snapshot));
    const taken = readers.length;
    assert.ok(taken > 40, `${taken} readers`);
    // Some readers continue in the pending file, the others in its segment.
    for (const { reader } of readers.filter((_, n) => n % 3 === 0)) await reader.take(1);
    await seal();
    for (const { reader, expected, label } of readers) {
      await reader.take(Infinity);
      assert.deepEqual(reader.lines, expected, label);
    }
    await log.close();
    assert.equal(storage.openFiles, 0);
    assert.ok(reports.every((line) => line.includes("not yet")), reports.join("\n"));
  });
}

test("a sealed file is closed after its last pending read, even if snapshots refer to it", async () => {
  const { log, storage, steps, seal } = await openSteered();
  await append(log, "a");
  const paused = steps.nextPause();
  await append(log, "b");
  await paused;
  const holders = Array.from({ length: 20 }, () => new Reader(log.snapshot));
  for (const holder of holders) await holder.take(1);
  const gate = gateAt("read");
  storage.hook = gate.hook;
  const reading = new Reader(log.snapshot).take(1);
  await gate.reached;
  const before = storage.openFiles;
  const sealed = seal();
  while (log.snapshot.files[0]!.path.startsWith("pending/")) await setImmediate();
  // No reader has opened the segment, and the pending file is open for the one pending read.
  assert.equal(storage.openFiles, before);
  gate.open();
  assert.ok(await reading);
  await sealed;
  assert.equal(storage.openFiles, before - 1);
  await log.close();
  assert.equal(storage.openFiles, 0);
});

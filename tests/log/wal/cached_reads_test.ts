/** Which reads of the tail block the thread, and what they let others do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers";
import { EventScan } from "../../../src/log/read/event_scan.ts";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import type { CallMode } from "../../../src/log/storage/storage.ts";
import { BLOCKING_READ_BYTES_MAX, CachedReads } from "../../../src/log/wal/cached_reads.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { joinPieces, openTestLog } from "../../support/test_log.ts";

const READ_BYTES = BLOCKING_READ_BYTES_MAX / 4;
const SLOW_READ_MS = 5;
/** Each of a megabyte. */
const TAIL_COMMITS = 10;

/** The modes of some reads, of which the one at `slow` takes long. */
async function modesOf(reads: number, slow = -1): Promise<CallMode[]> {
  const cached = new CachedReads();
  const modes: CallMode[] = [];
  const file = {
    read(into: Uint8Array, _position: number, mode: CallMode = "pooled"): Promise<number> {
      const isSlow = modes.push(mode) - 1 === slow;
      if (isSlow) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SLOW_READ_MS);
      return Promise.resolve(into.length);
    },
  };
  const into = new Uint8Array(READ_BYTES);
  for (let number = 0; number < reads; number++) await cached.read(file, into, 0);
  return modes;
}

test("read() blocks for a MiB at most before a pooled read", async () => {
  const modes = await modesOf(100);
  // On a busy machine some reads may count as slow.
  const runs = modes.join(" ").split("pooled").map((run) => run.trim().split(" ").length);
  assert.ok(Math.max(...runs) <= 4, modes.join(" "));
  assert.equal(modes[0], "blocking");
});

test("read() pools the next 16 reads after a slow one", async () => {
  const modes = await modesOf(17, 0);
  assert.deepEqual(modes, ["blocking", ...Array(16).fill("pooled")]);
});

test("a scan of a tail in the page cache lets other work run", () =>
  withFolder(async (folder) => {
    const { log } = await openTestLog(fileStorage(folder), 0);
    for (let number = 0; number < TAIL_COMMITS; number++) {
      const events = Array.from({ length: 100 }, () => ({ payload: "x".repeat(10_000) }));
      await log.append([preparedBatch(`${number}`, { events })]);
    }
    let turns = 0;
    let isDone = false;
    const countTurns = () => {
      turns += 1;
      if (!isDone) setImmediate(countTurns);
    };
    setImmediate(countTurns);
    const scan = new EventScan(log.snapshot, {
      after: undefined,
      filter: { kind: "none" },
      limitEvents: Infinity,
      limitBytes: Infinity,
    });
    assert.equal(await joinPieces(scan), "");
    isDone = true;
    // One runtime sometimes resolves a pooled read in the turn in which it was requested.
    assert.ok(turns >= 2, `${turns} turns of the event loop during ${TAIL_COMMITS} MB`);
    await log.close();
  }));

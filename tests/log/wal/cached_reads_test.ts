/** Blocking and pooled reads from the tail. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallMode } from "../../../src/log/storage/storage.ts";
import { BLOCKING_READ_BYTES_MAX, CachedReads } from "../../../src/log/wal/cached_reads.ts";

const READ_BYTES = BLOCKING_READ_BYTES_MAX / 4;
const SLOW_READ_MS = 5;

/** The modes of successive reads. The read with index `slow` takes a long time. */
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

test("read() reads at most 1 MiB with blocking reads before a pooled one", async () => {
  const modes = await modesOf(100);
  // On a busy machine, other reads may be slow, too.
  const runs = modes.join(" ").split("pooled").map((run) => run.trim().split(" ").length);
  assert.ok(Math.max(...runs) <= 4, modes.join(" "));
  assert.equal(modes[0], "blocking");
});

test("read() pools the next 16 reads after a slow one", async () => {
  const modes = await modesOf(18, 0);
  assert.deepEqual(modes, ["blocking", ...Array(16).fill("pooled"), "blocking"]);
});

/** Blocking and pooled reads from the tail. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallMode } from "../../../src/log/storage/storage.ts";
import { BLOCKING_READ_BYTES_MAX, CachedReads } from "../../../src/log/wal/cached_reads.ts";

test("read() reads at most 1 MiB with blocking reads, and pools those after a slow one", async (context) => {
  let nowMs = 0;
  context.mock.method(performance, "now", () => nowMs);
  const cached = new CachedReads();
  const into = new Uint8Array(BLOCKING_READ_BYTES_MAX / 4);
  const modesOf = async (reads: number, readMs: number) => {
    const modes: CallMode[] = [];
    const read = (_into: Uint8Array, _position: number, mode: CallMode = "pooled") => {
      nowMs += readMs;
      modes.push(mode);
      return Promise.resolve(into.length);
    };
    for (let number = 0; number < reads; number++) await cached.read({ read }, into, 0);
    return modes;
  };
  const blocking = Array(4).fill("blocking");
  assert.deepEqual(await modesOf(10, 0), [...blocking, "pooled", ...blocking, "pooled"]);
  assert.deepEqual(await modesOf(1, 5), ["blocking"]);
  assert.deepEqual(await modesOf(17, 0), [...Array(16).fill("pooled"), "blocking"]);
});

/** How much of its time a thread works that seals. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  PACE_SHARE_MIN,
  paced,
  SEAL_BACKLOG_BYTES_MAX,
  SealBacklog,
  workShare,
} from "../../../src/log/sealing/pace.ts";

const SHARES: [name: string, backlogBytes: number, share: number][] = [
  ["nothing", 0, PACE_SHARE_MIN],
  ["little", SEAL_BACKLOG_BYTES_MAX * PACE_SHARE_MIN / 2, PACE_SHARE_MIN],
  ["half of the bound", SEAL_BACKLOG_BYTES_MAX / 2, 1 / 2],
  ["the bound", SEAL_BACKLOG_BYTES_MAX, 1],
  ["more", 10 * SEAL_BACKLOG_BYTES_MAX, 1],
];

for (const [name, backlogBytes, share] of SHARES) {
  test(`workShare() of a backlog of ${name} is ${share}`, () => {
    assert.equal(workShare(backlogBytes), share);
  });
}

test("SealBacklog tells through its memory, in whole KiB, whatever the size", () => {
  const told = new SealBacklog();
  const seen = new SealBacklog(told.memory);
  for (const [bytes, expected] of [[0, 0], [1, 1024], [1e12, 1e12], [1e15, 2 ** 41 - 1024]]) {
    told.bytes = bytes!;
    assert.equal(seen.bytes, expected);
  }
});

test("paced() hands on all items, and calls the pace before each", () => {
  let calls = 0;
  const seen = [...paced(["a", "b"], () => calls++)];
  assert.deepEqual({ seen, calls }, { seen: ["a", "b"], calls: 2 });
});

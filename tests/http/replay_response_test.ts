import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { replayResponse } from "../../src/http/replay_response.ts";
import { REPLAY_EMPTY_PIECES_MAX, REPLAY_WHOLE_BYTES_MAX } from "../../src/limits.ts";
import { stubReplay } from "../support/stub_log.ts";

const CLOSING = {
  last_event_id: "last",
  next_after: "next",
  snapshot_through_event_id: "snapshot",
};
const LARGE = JSON.stringify("x".repeat(REPLAY_WHOLE_BYTES_MAX));

function noFailure(error: unknown): void {
  assert.fail(`unexpected failure: ${error}`);
}

/** The response to a replay of these pieces: its body, and in how many pieces it came. */
async function replayed(pieces: Array<string | Error>) {
  const failures: unknown[] = [];
  const response = await replayResponse(stubReplay(pieces), (error) => failures.push(error));
  const { body } = response;
  assert.ok(body !== null && typeof body !== "string");
  const isStreamed = !(body instanceof Uint8Array);
  const parts: Uint8Array[] = [];
  if (!isStreamed) parts.push(body);
  else {
    try {
      for await (const part of body) parts.push(part);
    } catch (error) {
      return { isStreamed, text: null, failures, error };
    }
  }
  return { isStreamed, text: Buffer.concat(parts).toString(), failures, error: null };
}

const PAGES: Array<[title: string, pieces: string[], events: unknown[], isStreamed: boolean]> = [
  ["an empty page", [], [], false],
  ["one piece", ["1,2"], [1, 2], false],
  ["pieces, with empty ones between", ["", "1", "", "2,3", ""], [1, 2, 3], false],
  ["a large page", [LARGE, "1", "", "2"], [JSON.parse(LARGE), 1, 2], true],
  ["a large first piece alone", [LARGE], [JSON.parse(LARGE)], false],
  [
    "a long scan that finds something late",
    [...new Array<string>(REPLAY_EMPTY_PIECES_MAX + 2).fill(""), "1", "", "2"],
    [1, 2],
    true,
  ],
  [
    "a long scan that finds nothing",
    new Array<string>(REPLAY_EMPTY_PIECES_MAX + 2).fill(""),
    [],
    true,
  ],
];

for (const [title, pieces, events, isStreamed] of PAGES) {
  test(`replayResponse() writes ${title} ${isStreamed ? "as a stream" : "at once"}`, async () => {
    const page = await replayed(pieces);
    assert.deepEqual(JSON.parse(page.text!), { events, ...CLOSING });
    assert.equal(page.isStreamed, isStreamed);
    assert.deepEqual(page.failures, []);
  });
}

test("replayResponse() leaves last_event_id out of an empty page", async () => {
  const replay = { ...stubReplay([]), lastEventId: null, nextAfter: null };
  const { body } = await replayResponse(replay, noFailure);
  assert.equal(
    String(body),
    '{"events":[],"next_after":null,"snapshot_through_event_id":"snapshot"}',
  );
});

test("replayResponse() rejects when the first piece cannot be read", async () => {
  const replay = stubReplay([new Error("disk")]);
  await assert.rejects(replayResponse(replay, noFailure), /disk/);
});

test("replayResponse() breaks a stream that fails in the middle, and tells why", async () => {
  const page = await replayed([LARGE, "1", new Error("disk")]);
  assert.match(String(page.error), /disk/);
  assert.deepEqual(page.failures, [page.error]);
});

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  REPLAY_EMPTY_PIECES_MAX,
  REPLAY_WHOLE_BYTES_MAX,
  replayResponse,
} from "../../src/api/replay_response.ts";
import { stubReplay } from "../support/stub_log.ts";

const CLOSING = {
  last_event_id: "last",
  next_after: "next",
  snapshot_through_event_id: "snapshot",
};
const MEDIUM = JSON.stringify("x".repeat(REPLAY_WHOLE_BYTES_MAX / 4));
const LARGE = JSON.stringify("x".repeat(REPLAY_WHOLE_BYTES_MAX));

const HERE = { client: () => "here" as const };

function noFailure(error: unknown): void {
  assert.fail(`unexpected failure: ${error}`);
}

/** Sends these pieces as a replay response. @returns the body, and the declared length, if any. */
async function replayed(pieces: string[]) {
  const { body } = await replayResponse(stubReplay(pieces), HERE, noFailure);
  assert.ok(body !== null && typeof body !== "string");
  if (body instanceof Uint8Array) return { text: String(body), lengthBytes: body.length };
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(Uint8Array.from(part));
  return { text: String(Buffer.concat(parts)), lengthBytes: null };
}

const EMPTY_PIECES = new Array<string>(REPLAY_EMPTY_PIECES_MAX + 2).fill("");

const PAGES: Array<[title: string, pieces: string[], events: unknown[], isWhole: boolean]> = [
  ["an empty page", [], [], true],
  ["one piece", ["1,2"], [1, 2], true],
  ["pieces with empty ones between them", ["", "1", "", "2,3", ""], [1, 2, 3], true],
  [
    "a page of ordinary size",
    [MEDIUM, "1", MEDIUM],
    [JSON.parse(MEDIUM), 1, JSON.parse(MEDIUM)],
    true,
  ],
  ["a large page", [LARGE, "1", "", "2"], [JSON.parse(LARGE), 1, 2], false],
  ["a long scan whose first match comes late", [...EMPTY_PIECES, "1", "", "2"], [1, 2], false],
  ["a long scan without a match", EMPTY_PIECES, [], false],
];

for (const [title, pieces, events, isWhole] of PAGES) {
  const form = isWhole ? "with its length" : "as a stream";
  test(`replayResponse() writes ${title} ${form}`, async () => {
    const page = await replayed(pieces);
    assert.deepEqual(JSON.parse(page.text), { events, ...CLOSING });
    assert.equal(page.lengthBytes, isWhole ? page.text.length : null);
  });
}

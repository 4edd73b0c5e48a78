import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { BODY_CHUNK_BYTES, withBody } from "../../src/api/request_body.ts";
import { StallWatch } from "../../src/http/stall_watch.ts";
import { CONTROL_BODY_BYTES_MAX } from "../../src/limits.ts";
import { Admission } from "../../src/service/admission.ts";
import { stubRequest } from "../support/stub_request.ts";

/** The body that arrives in these pieces. */
function bodyOf(pieces: Iterable<Uint8Array>): Promise<Buffer> {
  const limits = {
    limitBytes: CONTROL_BODY_BYTES_MAX,
    admission: new Admission(),
    stallWatch: new StallWatch(10_000),
  };
  const request = stubRequest({ headers: { "transfer-encoding": "chunked" }, pieces });
  return withBody(request, limits, (body) => Promise.resolve(Buffer.from(body)));
}

const SIZES: Array<[title: string, sizes: number[]]> = [
  ["nothing", []],
  ["empty pieces", [0, 0]],
  ["small pieces", [1, 0, 2, 3]],
  ["exactly one chunk", [BODY_CHUNK_BYTES]],
  ["exactly one chunk in two pieces", [1, BODY_CHUNK_BYTES - 1]],
  ["pieces over the edge of a chunk", [BODY_CHUNK_BYTES - 1, 2, BODY_CHUNK_BYTES]],
  ["a piece of several chunks", [5, 3 * BODY_CHUNK_BYTES + 7, 5]],
];
for (const [title, sizes] of SIZES) {
  test(`withBody() collects ${title}`, async () => {
    const pieces = sizes.map((size, index) => Buffer.alloc(size, 65 + index));
    assert.ok((await bodyOf(pieces)).equals(Buffer.concat(pieces)));
  });
}

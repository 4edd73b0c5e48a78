import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { BODY_ROOM_STEP_BYTES, withBody } from "../../src/api/request_body.ts";
import { CONTROL_BODY_BYTES_MAX } from "../../src/limits.ts";
import { Admission } from "../../src/service/admission.ts";
import { stubRequest } from "../support/stub_request.ts";

const PIECE_BYTES = 64 * 1024;

/** Reads a body that arrives in these pieces, by default a chunked one. */
async function bodyOf(
  pieces: Iterable<Uint8Array>,
  bodyBytes: number | null = null,
  admission: Admission = new Admission(),
): Promise<Buffer> {
  const request = stubRequest({ bodyBytes, pieces });
  try {
    return await withBody(request, CONTROL_BODY_BYTES_MAX, admission, (body) => {
      return Promise.resolve(Buffer.from(body));
    });
  } finally {
    assert.equal(admission.heldBytes, 0, "its reservation is released");
  }
}

test("withBody() rejects a chunked body at its limit", async () => {
  let piecesRead = 0;
  function* endless() {
    for (;; piecesRead++) yield new Uint8Array(PIECE_BYTES);
  }
  await assert.rejects(bodyOf(endless()), { code: "body_too_large" });
  assert.equal(piecesRead, CONTROL_BODY_BYTES_MAX / PIECE_BYTES);
});

test("withBody() reserves memory for a large body only as it arrives", async () => {
  const admission = new Admission();
  const heldBytes: number[] = [];
  function* pieces() {
    for (let i = 0; i < 4; i++) {
      heldBytes.push(admission.heldBytes);
      yield new Uint8Array(BODY_ROOM_STEP_BYTES);
    }
  }
  await bodyOf(pieces(), CONTROL_BODY_BYTES_MAX, admission);
  const step = BODY_ROOM_STEP_BYTES;
  assert.deepEqual(heldBytes, [step, step, 3 * step, 3 * step]);
});

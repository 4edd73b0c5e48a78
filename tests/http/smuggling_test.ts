/**
 * Request smuggling against the served API. The service never executes an ambiguous request, and
 * parses the same requests however their bytes are split.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { allEvents } from "../contract/support/api.ts";
import { withServedLog } from "../contract/support/served_log.ts";
import { randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";
import { RawConnection } from "../support/raw_client.ts";
import type { RawResponse } from "../support/raw_response.ts";
import { type Shape, SHAPES } from "./support/smuggling_shapes.ts";

/** Maximum size of requests that are also sent byte by byte. */
const SINGLE_BYTES_MAX = 4096;

/**
 * Sends the pieces, then half-closes. @returns the status of each response. After a request that is
 * malformed, the connection ends.
 */
async function statusesOf(socketPath: string, pieces: Iterable<Uint8Array>): Promise<number[]> {
  const connection = await RawConnection.open(socketPath);
  for (const piece of pieces) await connection.write(piece);
  connection.endInput();
  const statuses: number[] = [];
  let headers: RawResponse["headers"] = {};
  for (;;) {
    const response = await connection.readResponse();
    if (response === null) break;
    assert.ok(response.isComplete);
    statuses.push(response.status);
    headers = response.headers;
    assert.equal(headers["content-type"], "application/json");
  }
  if (statuses.at(-1) === 400) assert.equal(headers["connection"], "close");
  connection.destroy();
  return statuses;
}

async function assertSeen(shape: Shape, pieces: Iterable<Uint8Array>): Promise<void> {
  await withServedLog(async ({ socketPath, reports }) => {
    const statuses = await statusesOf(socketPath, pieces);
    const executed = (await allEvents(socketPath)).map(({ batch_id }) => batch_id);
    assert.deepEqual([statuses, executed], [shape.statuses, shape.executed]);
    assert.deepEqual(reports, []);
  });
}

function* cut(bytes: Uint8Array, nextBytes: () => number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    const end = at + nextBytes();
    yield bytes.subarray(at, end);
    at = end;
  }
}

const seed = testSeed();
for (const shape of SHAPES) {
  const bytes = Buffer.from(shape.bytes, "latin1");

  test(`smuggling: ${shape.title}`, () => assertSeen(shape, [bytes]));

  test(`smuggling, split: ${shape.title} (SEED=${seed})`, async () => {
    const random = seededRandom(seed);
    await assertSeen(shape, cut(bytes, () => randomInteger(random, 1, bytes.length)));
    await assertSeen(shape, cut(bytes, () => randomInteger(random, 1, 1 + bytes.length / 10)));
    if (bytes.length <= SINGLE_BYTES_MAX) await assertSeen(shape, cut(bytes, () => 1));
  });
}

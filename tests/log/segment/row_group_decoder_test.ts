/** The thread that decodes row groups: the same lines as without one, and its failures. */
import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import {
  type DecodeRequest,
  decodeThread,
  INLINE_DECODER,
  type RowGroupDecoder,
} from "../../../src/log/segment/row_group_decoder.ts";
import { openSegment } from "../../../src/log/segment/segment_reader.ts";
import { SegmentError } from "../../../src/log/storage/errors.ts";
import type { ThreadPoolOptions } from "../../../src/threads/thread_pool.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit } from "../../support/corrupt.ts";
import { hostileBatch, sealCommits, smallBatches } from "../../support/test_segment.ts";

const DYING_WORKER = new URL("../../support/dying_worker.ts", import.meta.url);
const NO_WORKER = new URL("../../support/no_such_worker.ts", import.meta.url);

/** Requests for every row group of a segment with hostile values, and its lines. */
async function requests(): Promise<{ made: DecodeRequest[]; lines: Buffer }> {
  const random = new SeededRandom();
  const hostile = Array.from({ length: 40 }, (_, n) => hostileBatch(random, n, 5));
  const { storage, lines } = await sealCommits([smallBatches(2100), hostile]);
  const segment = await openSegment(storage, "0.parquet");
  const made = [];
  for (const rowGroup of await segment.rowGroups()) {
    const { columns } = rowGroup;
    const bytes = await segment.readBytes(columns[0]!.start, columns.at(-1)!.end);
    made.push({ rowGroup, bytes: bytes.buffer as ArrayBuffer, recordKey: undefined });
  }
  await segment.close();
  return { made, lines };
}

function decoderFor(t: TestContext, options: Partial<ThreadPoolOptions> = {}): RowGroupDecoder {
  const decoder = decodeThread(options);
  t.after(() => decoder.close());
  return decoder;
}

/** Decodes a copy, as the thread takes the bytes. */
async function decode(
  decoder: RowGroupDecoder,
  request: DecodeRequest,
  recordKey?: string,
): Promise<string> {
  const lines = await decoder.decode({ ...request, bytes: request.bytes.slice(), recordKey });
  return lines.toString();
}

test(`decodeThread() decodes lines as inline decoding does (seed ${SEED})`, async (t) => {
  const decoder = decoderFor(t);
  const { made, lines } = await requests();
  let read = "";
  for (const request of made) {
    const decoded = await decode(decoder, request);
    assert.equal(decoded, await decode(INLINE_DECODER, request));
    read += decoded;
  }
  assert.ok(made.length > 1);
  assert.equal(read, lines.toString());
});

test("decodeThread() fails with a SegmentError for damaged bytes, and goes on", async (t) => {
  const decoder = decoderFor(t);
  const { made: [request] } = await requests();
  const bytes = Uint8Array.from(flipBit(new Uint8Array(request!.bytes), 100)).buffer;
  await assert.rejects(decoder.decode({ ...request!, bytes }), (error) => {
    assert.ok(error instanceof SegmentError);
    assert.match(error.message, /^event_id in bytes \[4, \d+\): has CRC-32/);
    return true;
  });
  assert.ok((await decode(decoder, request!)).length > 0);
});

test("decodeThread() decodes in place if no thread starts", async (t) => {
  const decoder = decoderFor(t, { start: () => new Worker(NO_WORKER) });
  const { made: [request] } = await requests();
  for (let round = 0; round < 2; round++) {
    assert.equal(await decode(decoder, request!), await decode(INLINE_DECODER, request!));
  }
});

test("decodeThread() fails one request when its thread dies", async (t) => {
  let started = 0;
  const start = (module: URL) => new Worker(started++ === 0 ? DYING_WORKER : module);
  const decoder = decoderFor(t, { start });
  const { made: [request] } = await requests();
  await assert.rejects(decode(decoder, request!), /^SegmentError: .*killed by a request/);
  assert.equal(await decode(decoder, request!), await decode(INLINE_DECODER, request!));
  assert.equal(started, 2);
});

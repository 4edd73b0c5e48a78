/** The thread that decodes row groups, and its failures. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import {
  type DecodeRequest,
  decodeThread,
  type RowGroupDecoder,
} from "../../../src/log/segment/row_group_decoder.ts";
import { SegmentError } from "../../../src/log/storage/errors.ts";
import type { ThreadPoolOptions } from "../../../src/threads/thread_pool.ts";
import { flipBit } from "../../support/corrupt.ts";
import { openSegment, sealCommits, smallBatches } from "../../support/test_segment.ts";

const DYING_WORKER = new URL("../../support/dying_worker.ts", import.meta.url);
const NO_WORKER = new URL("../../support/no_such_worker.ts", import.meta.url);

/** A request for the only row group of a segment, and its lines. */
async function requestAndLines(): Promise<{ request: DecodeRequest; lines: string }> {
  const { storage, lines } = await sealCommits([smallBatches(100)]);
  const segment = openSegment(storage, "0.parquet");
  const [rowGroup] = await segment.rowGroups();
  const { columns } = rowGroup!;
  const { buffer } = await segment.readBytes(columns[0]!.start, columns.at(-1)!.end);
  await segment.close();
  const request = { rowGroup: rowGroup!, bytes: buffer as ArrayBuffer, recordKey: undefined };
  return { request, lines: lines.toString() };
}

const { request: REQUEST, lines: LINES } = await requestAndLines();

function decoderFor(t: TestContext, options: Partial<ThreadPoolOptions> = {}): RowGroupDecoder {
  const decoder = decodeThread(options);
  t.after(() => decoder.close());
  return decoder;
}

/** Decodes a copy, as the thread takes the bytes. */
async function decode(decoder: RowGroupDecoder, bytes = REQUEST.bytes): Promise<string> {
  return (await decoder.decode({ ...REQUEST, bytes: bytes.slice() })).toString();
}

test("decodeThread() fails with a SegmentError for damaged bytes, and goes on", async (t) => {
  const decoder = decoderFor(t);
  const damaged = Uint8Array.from(flipBit(new Uint8Array(REQUEST.bytes), 100)).buffer;
  await assert.rejects(decode(decoder, damaged), (error) => {
    assert.ok(error instanceof SegmentError);
    assert.match(error.message, /^event_id in bytes \[4, \d+\): has CRC-32/);
    return true;
  });
  assert.equal(await decode(decoder), LINES);
});

test("decodeThread() decodes in place if no thread starts", async (t) => {
  const decoder = decoderFor(t, { start: () => new Worker(NO_WORKER) });
  for (let round = 0; round < 2; round++) assert.equal(await decode(decoder), LINES);
});

test("decodeThread() fails one request when its thread dies", async (t) => {
  let started = 0;
  const start = (module: URL) => new Worker(started++ === 0 ? DYING_WORKER : module);
  const decoder = decoderFor(t, { start });
  await assert.rejects(decode(decoder), /^SegmentError: .*killed by a request/);
  assert.equal(await decode(decoder), LINES);
  assert.equal(started, 2);
});

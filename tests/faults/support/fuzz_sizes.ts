/** Requests around the size limits and far above them. Each takes a few milliseconds. */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";
import { get, post, toBytes, toChunkedBytes } from "./fuzz_request.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const INGEST = "/v1/events";

/** A request. If it is complete and correctly framed (`isFramed`), it gets one response. */
export interface SizedRequest {
  bytes: Buffer;
  isFramed: boolean;
}

/** @param batchId id of a batch that may be committed. */
export function hostileSize(random: SeededRandom, source: string, batchId: string): SizedRequest {
  return random.pick(SIZES)(batchOf(source, batchId));
}

/** Makes the JSON of a batch from the JSON of its events. */
type BatchText = (events: string) => string;

function batchOf(source: string, batchId: string): BatchText {
  return (events) => `{"source":"${source}","batch_id":"${batchId}","events":[${events}]}`;
}

function eventText(payload: string): string {
  return `{"stream":"s","record_key":"k","kind":"upserted","payload":${payload}}`;
}

function framed(target: string, body: Buffer | string): SizedRequest {
  return { bytes: toBytes(post(target, body)), isFramed: true };
}

const SIZES: readonly ((batch: BatchText) => SizedRequest)[] = [
  () => framed(INGEST, Buffer.alloc(32 * MIB + 1, " ")),
  () => framed(INGEST, Buffer.alloc(8 * MIB, "[")),
  () => framed("/v1/sources/retire", Buffer.alloc(MIB + 1, " ")),
  (batch) => framed(INGEST, batch(Array(10_001).fill(eventText("0")).join())),
  (batch) => framed(INGEST, batch(Array(2000).fill(eventText("0")).join())),
  (batch) => framed(INGEST, batch(eventText(`"${"x".repeat(2 * MIB)}"`))),
  (batch) => framed(INGEST, batch(eventText(`[${"1e20,".repeat(100 * KIB)}0]`))),
  (batch) => framed(INGEST, batch(eventText(`{${manyMembers(50_000)}}`))),
  (batch) => framed(INGEST, " ".repeat(MIB) + batch(eventText("0")) + "\n".repeat(MIB)),
  (batch) => framed(INGEST, batch(eventText("[".repeat(MIB) + "]".repeat(MIB)))),
  (batch) => framed(INGEST, batch(eventText('{"a":'.repeat(200 * KIB)))),
  (batch) => ({
    bytes: toChunkedBytes(
      post(INGEST, ""),
      [...batch(eventText(`"${"y".repeat(20_000)}"`))].map((char) => Buffer.from(char)),
    ),
    isFramed: true,
  }),
  () => ({
    bytes: toChunkedBytes(post(INGEST, ""), Array(33).fill(Buffer.alloc(MIB, " "))),
    isFramed: true,
  }),
  () => ({
    bytes: Buffer.concat([
      Buffer.from(`POST ${INGEST} HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n`),
      Buffer.alloc(MIB, "{"),
    ]),
    isFramed: false,
  }),
  () => ({ bytes: Buffer.alloc(4 * MIB, "GET / HTTP/1.1\r\nX: y\r\n"), isFramed: false }),
  () => ({ bytes: Buffer.alloc(MIB, "\r\n"), isFramed: false }),
  () => ({ bytes: Buffer.alloc(64 * KIB, toBytes(get("/v1/none"))), isFramed: false }),
];

function manyMembers(count: number): string {
  return Array.from({ length: count }, (_, n) => `"${count - n}":${n}`).join();
}

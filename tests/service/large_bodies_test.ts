/**
 * Large bodies are prepared on other threads. Each batch is stored as sent. If a thread dies, one
 * request fails, and none of its events are written.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { createHandler } from "../../src/api/handler.ts";
import { ConnectionLostError, type HttpRequest } from "../../src/http/message.ts";
import { Admission } from "../../src/service/admission.ts";
import { BatchPreparer } from "../../src/service/batch_preparer.ts";
import { type Random, randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { stubRequest } from "../support/stub_request.ts";
import { tailOf, testTime } from "../support/test_log.ts";
import { verifyStorage } from "../support/verifying.ts";
import { openWatchedService } from "../support/watched_log.ts";

const DYING_WORKER = new URL("../support/dying_worker.ts", import.meta.url);
const PIECE_BYTES = 50_000;

interface Submitted {
  batchId: string;
  payloads: string[];
}

function bodyOf({ batchId, payloads }: Submitted): Buffer {
  const events = payloads.map((payload, place) => ({
    stream: "s",
    record_key: `${place}`,
    kind: "upserted",
    payload,
  }));
  return Buffer.from(JSON.stringify({ source: "a", batch_id: batchId, events }));
}

/** A body of 300 KB to 3 MB. A letter in its payloads identifies the batch. */
function randomBatch(random: Random, number: number): Submitted {
  const letter = String.fromCharCode("a".charCodeAt(0) + number % 26);
  const payload = letter.repeat(randomInteger(random, 250, 300));
  const count = randomInteger(random, 1000, 9000);
  return { batchId: `${number}`, payloads: Array(count).fill(payload) };
}

function post(body: Buffer, sentBytes = body.length): HttpRequest {
  function* pieces() {
    for (let start = 0; start < sentBytes; start += PIECE_BYTES) {
      yield body.subarray(start, Math.min(sentBytes, start + PIECE_BYTES));
    }
    if (sentBytes < body.length) throw new ConnectionLostError("the connection was lost");
  }
  const headers = { "content-length": String(body.length) };
  return stubRequest({ method: "POST", headers, pieces: pieces() });
}

/** Sends a body. @returns the status of the response. */
type Answer = (request: HttpRequest) => Promise<number>;

/** @returns the final disk. @param isDying whether the first thread dies on its first body. */
async function withPosts(
  isDying: boolean,
  use: (answer: Answer) => Promise<void>,
): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk();
  let started = 0;
  const start = (module: URL) => new Worker(isDying && ++started === 1 ? DYING_WORKER : module);
  const preparer = new BatchPreparer({ start });
  const service = await openWatchedService({ storage, ...testTime(), report: () => {} });
  const handler = createHandler({
    log: service,
    token: "",
    replay: { defaultLimit: 10, maxLimit: 100 },
    admission: new Admission(),
    prepare: (body) => preparer.prepare(body),
    report: () => {},
  });
  try {
    await use(async (request) => (await handler(request)).status);
  } finally {
    await service.close();
    await preparer.close();
  }
  return storage;
}

/** Describes each batch in the log, which must verify without violations. */
async function stored(storage: SimulatedDisk): Promise<Map<string, string>> {
  assert.equal((await verifyStorage(storage)).failure, null);
  const payloads = new Map<string, string[]>();
  for (const line of tailOf(storage.tree()).toString().trimEnd().split("\n")) {
    const { batch_id: batchId, payload } = JSON.parse(line);
    if (batchId === undefined) continue;
    if (!payloads.has(batchId)) payloads.set(batchId, []);
    payloads.get(batchId)!.push(payload);
  }
  return new Map([...payloads].map(([batchId, all]) => [batchId, summary(all)]));
}

/** A short description for comparisons. */
function summary(payloads: readonly string[]): string {
  return `${payloads.length} times ${[...new Set(payloads)].join()}`;
}

const seed = testSeed();
for (const isDying of [false, true]) {
  const title = isDying ? ", after a thread died" : "";
  test(`large batches are stored as sent${title} (SEED=${seed})`, async () => {
    const random = seededRandom(seed);
    const expected = new Map<string, string>();
    const storage = await withPosts(isDying, async (answer) => {
      if (isDying) assert.equal(await answer(post(bodyOf(randomBatch(random, 99)))), 500);
      const postOne = async (number: number) => {
        const submitted = randomBatch(random, number);
        const body = bodyOf(submitted);
        const fate = randomInteger(random, 0, 5);
        if (fate === 0) {
          assert.equal(await answer(post(body, randomInteger(random, 1, body.length - 1))), 400);
        } else if (fate === 1) {
          assert.equal(await answer(post(Buffer.from(`${body.subarray(0, -1)},`))), 400);
        }
        assert.equal(await answer(post(body)), 200);
        expected.set(submitted.batchId, summary(submitted.payloads));
        if (fate === 2) assert.equal(await answer(post(body)), 200);
      };
      for (let number = 0; number < 16; number += 4) {
        const four = await Promise.allSettled([0, 1, 2, 3].map((n) => postOne(number + n)));
        for (const one of four) if (one.status === "rejected") throw one.reason;
      }
    });
    assert.deepEqual(await stored(storage), expected);
  });
}

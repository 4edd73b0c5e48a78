/**
 * Memory of large bodies and their lines is used again by those that come next: what is left in it
 * must not show in them, and no outcome of a batch may break that.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { prepareBatch } from "../../src/event/batch.ts";
import { BufferPool } from "../../src/event/buffer_pool.ts";
import { createHandler } from "../../src/api/handler.ts";
import { ConnectionLostError, type HttpRequest } from "../../src/http/message.ts";
import { Admission } from "../../src/service/admission.ts";
import { BatchThreads } from "../../src/service/batch_threads.ts";
import { type Random, randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { stubRequest } from "../support/stub_request.ts";
import { noRoomAfter } from "../support/storage_faults.ts";
import { tailOf, testTime } from "../support/test_log.ts";
import { verifyStorage } from "../support/verifying.ts";
import { openWatchedService } from "../support/watched_log.ts";

const WORKER = new URL("../../src/service/batch_worker.ts", import.meta.url);
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

/** A body of 300 KB to 3 MB: each letter stands for one batch. */
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

interface Posts {
  memory: BufferPool;
  storage: SimulatedDisk;
  /** The status of the response. */
  answer(request: HttpRequest): Promise<number>;
}

/**
 * What is on the disk in the end. @param isDying whether the first thread dies of its first body.
 */
async function withPosts(
  use: (posts: Posts) => Promise<void>,
  isDying = false,
): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk();
  const memory = new BufferPool();
  let started = 0;
  const start = () => new Worker(isDying && ++started === 1 ? DYING_WORKER : WORKER);
  const threads = new BatchThreads({ memory, start });
  const service = await openWatchedService({
    storage,
    ...testTime(),
    report: () => {},
    fill: (events, values) => threads.fill(events, values),
  });
  const handler = createHandler({
    log: service,
    token: "",
    replay: { defaultLimit: 10, maxLimit: 100 },
    admission: new Admission(),
    prepare: (body) => threads.prepare(body),
    memory,
    report: () => {},
  });
  try {
    await use({ storage, memory, answer: async (request) => (await handler(request)).status });
  } finally {
    await service.close();
    await threads.close();
  }
  return storage;
}

/** What each batch in the log is, which must verify. */
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

/** Short enough to be compared. */
function summary(payloads: readonly string[]): string {
  return `${payloads.length} times ${[...new Set(payloads)].join()}`;
}

const seed = testSeed();
for (const isDying of [false, true]) {
  const title = isDying ? ", after a thread died" : "";
  test(`large batches show nothing of those before them${title} (SEED=${seed})`, async () => {
    const random = seededRandom(seed);
    const expected = new Map<string, string>();
    const storage = await withPosts(async ({ answer, memory }) => {
      if (isDying) assert.equal(await answer(post(bodyOf(sameSize("lost")))), 500);
      const postOne = async (number: number) => {
        const submitted = randomBatch(random, number);
        const body = bodyOf(submitted);
        const fate = randomInteger(random, 0, 5);
        if (fate === 0) {
          assert.equal(await answer(post(body, randomInteger(random, 1, body.length - 1))), 429);
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
      assert.ok(memory.heldBytes > 0);
    }, isDying);
    assert.deepEqual(await stored(storage), expected);
  });
}

/** Batches of one size, one after the other, and what else befalls them. */
const FATES: [what: string, befall: (posts: Posts) => Promise<void>][] = [
  ["committed", async () => {}],
  ["refused", async ({ answer }) => {
    const body = bodyOf(sameSize("A"));
    body[body.length - 1] = "]".charCodeAt(0);
    assert.equal(await answer(post(body)), 400);
  }],
  ["aborted", async ({ answer }) => {
    const body = bodyOf(sameSize("B"));
    assert.equal(await answer(post(body, body.length - PIECE_BYTES)), 429);
  }],
  ["known", async ({ answer }) => {
    for (let i = 0; i < 2; i++) assert.equal(await answer(post(bodyOf(sameSize("C")))), 200);
  }],
  ["without room on the disk", async ({ answer, storage }) => {
    storage.hook = noRoomAfter(0);
    assert.equal(await answer(post(bodyOf(sameSize("D")))), 500);
    storage.hook = null;
  }],
];
for (const [what, befall] of FATES) {
  test(`memory of large batches is used again after one that is ${what}`, async () => {
    await withPosts(async (posts) => {
      const { answer, memory } = posts;
      // The first tells how much the next will take.
      for (const id of ["1", "2"]) assert.equal(await answer(post(bodyOf(sameSize(id)))), 200);
      const { heldBytes } = memory;
      const { lines, envelopes } = prepareBatch(bodyOf(sameSize("1"))).events;
      const usedBytes = bodyOf(sameSize("1")).length + lines.length + envelopes.length;
      assert.ok(heldBytes >= usedBytes && heldBytes < usedBytes * 1.13, "one of each is held");
      await befall(posts);
      assert.equal(await answer(post(bodyOf(sameSize("3")))), 200);
      assert.equal(memory.heldBytes, heldBytes, "none is new, none is lost");
    });
  });
}

function sameSize(batchId: string): Submitted {
  return { batchId, payloads: Array(3000).fill("x".repeat(300)) };
}

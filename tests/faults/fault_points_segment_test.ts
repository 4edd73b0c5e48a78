/**
 * A segment has damaged rows but a valid footer, so the service starts. Requests that need the
 * unreadable rows get a 500 and are reported to the operator. All other requests succeed, and no
 * damaged byte is served. SEGMENT_DAMAGES sets the number of damaged places.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import process from "node:process";
import { test } from "node:test";
import { assertError, batchWith, commit, ingest, replayPage } from "../contract/support/api.ts";
import { FollowReader } from "../contract/support/follow_reader.ts";
import { withServedLog } from "../contract/support/served_log.ts";
import { type HttpReply, request } from "../support/http_client.ts";
import { type Random, randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";
import { sealAll } from "../support/sealing.ts";
import { SimulatedDisk, type Tree } from "../support/simulated_disk.ts";
import { verifyStorage } from "../support/verifying.ts";

const DAMAGES = Number(process.env.SEGMENT_DAMAGES ?? 32);
const DAMAGED_BYTES_MAX = 64;
const MAGIC_BYTES = 4;
const FOOTER_CRC_BYTES = 4;
const TRAILER_BYTES = 8;

const SEALED = Array.from({ length: 3 }, (_, number) =>
  batchWith({
    batch_id: `sealed-${number}`,
    events: Array.from({ length: 4 }, (_, place) => ({
      stream: `s-${place}`,
      record_key: `${number}/${place}`,
      kind: "upserted",
      payload: { text: `${number} ${place} `.repeat(20) },
    })),
  }));

/** A log with one segment and a tail, and the id of its last sealed event. */
async function sealedLog(): Promise<{ tree: Tree; lastSealed: string }> {
  const storage = new SimulatedDisk();
  let lastSealed = "";
  await withServedLog(async ({ socketPath }) => {
    for (const batch of SEALED) lastSealed = (await commit(socketPath, batch)).last_event_id;
  }, { storage });
  await sealAll(storage);
  await withServedLog(async ({ socketPath }) => {
    await commit(socketPath, batchWith({ batch_id: "in the tail" }));
  }, { storage });
  return { tree: storage.tree(), lastSealed };
}

/** Damages the body of the segment, but neither the footer nor the footer's CRC-32. */
function damage(tree: Tree, random: Random): Tree {
  const [path, bytes] = [...tree].find(([path]) => path.startsWith("segments/"))!;
  const segment = Buffer.from(bytes!);
  const footerBytes = segment.readUInt32LE(segment.length - TRAILER_BYTES);
  const bodyEnd = segment.length - TRAILER_BYTES - footerBytes - FOOTER_CRC_BYTES;
  const start = randomInteger(random, MAGIC_BYTES, bodyEnd - 1);
  const end = Math.min(start + randomInteger(random, 1, DAMAGED_BYTES_MAX), bodyEnd);
  for (let place = start; place < end; place++) segment[place]! ^= randomInteger(random, 1, 255);
  return new Map(tree).set(path, segment);
}

/** Whether a request failed. The failure must be `internal_error`. */
function failed(reply: HttpReply): boolean {
  if (reply.status === 200) return false;
  assertError(reply, "internal_error");
  return true;
}

/** Whether a follow ended because the log could not be read. */
async function endsAtOnce(socketPath: string): Promise<boolean> {
  const follow = await FollowReader.open(socketPath);
  try {
    const { type, reason } = await follow.next() as { type: string; reason?: string };
    if (type === "end") assert.equal(reason, "replay_failed");
    return type === "end";
  } finally {
    follow.close();
  }
}

/** Reads all sealed events with every kind of request. @returns the numbers of failures. */
async function askForSealed(socketPath: string): Promise<{ requests: number; follows: number }> {
  const replies = [
    await request(socketPath),
    await request(socketPath, { path: "/v1/events?stream=s-1&limit=1" }),
    await request(socketPath, { path: "/v1/events?source=shop&record_key=1%2F2" }),
    await request(socketPath, { path: "/v1/streams" }),
    ...await Promise.all(SEALED.map((batch) => ingest(socketPath, batch))),
  ];
  const isEnd = await endsAtOnce(socketPath);
  return { requests: replies.filter(failed).length, follows: isEnd ? 1 : 0 };
}

const seed = testSeed();

test(`only requests that need a damaged page get a 500 (SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const { tree, lastSealed } = await sealedLog();
  let requestsFailed = 0;
  for (let count = 0; count < DAMAGES; count++) {
    const storage = new SimulatedDisk(damage(tree, random));
    await withServedLog(async ({ socketPath, reports }) => {
      const { requests, follows } = await askForSealed(socketPath);
      // If the batch index is unreadable, the service cannot tell whether a batch is new.
      const newBatch = await ingest(socketPath, batchWith({ batch_id: "goes on" }));
      const requestsNow = requests + (failed(newBatch) ? 1 : 0);
      requestsFailed += requestsNow;
      const failures = reports.filter((line) => !line.includes("lookups read the rows instead"));
      assert.equal(failures.length, requestsNow + follows, "one line per failure");
      for (const line of failures) {
        assert.match(line, /^(GET|POST) \/v1\/\w+ failed: |^follow ended, /);
        assert.match(line, /segments\/.*\.parquet/);
      }
      const { events } = await replayPage(socketPath, `after=${lastSealed}`);
      const batchIds = events.map((event) => event.batch_id);
      assert.equal(batchIds.at(0), "in the tail");
      assert.equal(batchIds.at(-1) === "goes on", newBatch.status === 200);
    }, { storage });
    const { failure } = await verifyStorage(storage);
    assert.equal(failure?.code, "file_hash_mismatch");
  }
  assert.ok(requestsFailed > 0, "some requests encountered damage");
});

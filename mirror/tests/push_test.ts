/** `push` under failures: the stream contains each event once, in order. */
import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { randomInteger, randomItem, seededRandom, testSeed } from "../../tools/support/random.ts";
import {
  appendPayloads,
  end,
  type Mirrored,
  pushAll,
  startPush,
  testWithNats,
} from "./support/mirrored.ts";
import { saidEnd } from "../nats/companion.ts";
import { openStream } from "../nats/stream.ts";
import {
  assertMirrors,
  lastSequence,
  pause,
  readStream,
  STREAM,
  untilSequence,
} from "./support/nats_stream.ts";
import { signalChild, untilPrinted } from "../../tools/support/program.ts";

const seed = testSeed();

/** Payloads that re-encoding would change: member order, escapes, numbers and nesting. */
const PAYLOADS: unknown[] = [
  { "10": 1, "9": 2, a: { "2": [], "1": {} } },
  { "\u{20ac}": "\r\n\u0000\u{1f600}\u2028</x>", "": null },
  [1e21, 1e-7, 0.1, -5, 9007199254740992],
  "text",
  { event_id: [{}, { event_id: '],"last_event_id":"' }] },
];

/** Number of times the pusher is killed. In one round, NATS is killed as well. */
const ROUNDS = 20;
const NATS_KILL_ROUND = 10;

/**
 * Appends until `isOver()`, at most 300 events and one batch ahead of the stream.
 * @returns the event count.
 */
async function ingest(mirrored: Mirrored, random: () => number, isOver: () => boolean) {
  let count = 0;
  for (let batch = 0; !isOver(); batch++) {
    const payloads = Array.from(
      { length: randomInteger(random, 1, 40) },
      () => randomItem(random, PAYLOADS),
    );
    const source = randomItem(random, ["shop", "crm.eu"]);
    const stream = randomItem(random, ["orders", "a.b", "x..y."]);
    count += (await appendPayloads(mirrored, `b${batch}`, payloads, { source, stream })).events;
    while (!isOver() && count > 300 + await lastSequence(mirrored.nats).catch(() => 0)) {
      await pause();
    }
  }
  return count;
}

testWithNats(`push survives kills of the pusher and NATS (SEED=${seed})`, async (mirrored) => {
  const random = seededRandom(seed);
  const { nats } = mirrored;
  let isOver = false;
  const ingesting = ingest(mirrored, random, () => isOver);
  for (let round = 0; round < ROUNDS; round++) {
    const pusher = startPush(mirrored);
    const kill = await lastSequence(nats) + randomInteger(random, 1, 150);
    await untilSequence(nats, kill, pusher);
    if (round === NATS_KILL_ROUND) {
      await nats.stop("SIGKILL");
      await nats.start();
      await untilPrinted(pusher, ({ stderr }) => stderr.includes("reconnecting"));
      await untilSequence(nats, await lastSequence(nats) + 1, pusher);
    }
    await end(pusher, "SIGKILL");
  }
  isOver = true;
  const count = await ingesting;
  const pusher = startPush(mirrored);
  await untilSequence(nats, count, pusher);
  assert.equal(await end(pusher, "SIGTERM"), 0);
  await assertMirrors(mirrored);
  const subjects = new Set((await readStream(nats)).map(({ subject }) => subject));
  for (const subject of subjects) assert.match(subject, /^ground\.(shop|crm%2Eeu)\.[^.]+$/);
});

testWithNats(`a second pusher takes over after a kill (SEED=${seed})`, async (mirrored) => {
  const { nats } = mirrored;
  const [first, second] = [startPush(mirrored), startPush(mirrored)];
  let isOver = false;
  const ingesting = ingest(mirrored, seededRandom(seed), () => isOver);
  await untilSequence(nats, 1500, second);
  await end(first, "SIGKILL");
  await untilSequence(nats, 3000, second);
  isOver = true;
  await untilSequence(nats, await ingesting, second);
  await end(second, "SIGTERM");
  await assertMirrors(mirrored);
});

testWithNats("push waits for NATS and the service", async (mirrored) => {
  const { served, nats } = mirrored;
  await appendPayloads(mirrored, "b1", [1, 2, 3]);
  await nats.stop();
  const pusher = startPush(mirrored);
  await untilPrinted(pusher, ({ stderr }) => stderr.includes("connection refused"));
  await nats.start();
  await untilSequence(nats, 3, pusher);
  await served.stop("SIGKILL");
  await untilPrinted(pusher, ({ stderr }) => stderr.includes("ground.sock"));
  await served.start();
  await appendPayloads(mirrored, "b2", [4]);
  await untilSequence(nats, 4, pusher);
  await end(pusher, "SIGKILL");
  await assertMirrors(mirrored);
});

testWithNats("push exits on SIGINT and with --once", async (mirrored) => {
  const { last_event_id } = await appendPayloads(mirrored, "b1", [1, 2, 3]);
  const pusher = startPush(mirrored);
  await untilPrinted(pusher, ({ stdout }) => stdout === `3 events, through ${last_event_id}\n`);
  assert.equal(await end(pusher, "SIGINT"), 0);
  assert.match(pusher.output.stderr, /^the server accepts messages of 1048576 bytes; .*\n$/);
  const { last_event_id: endId } = await appendPayloads(mirrored, "b2", [4]);
  await pushAll(mirrored);
  await assertMirrors(mirrored);
  const stream = await openStream({ servers: mirrored.nats.url, stream: STREAM }, {
    isCreated: false,
  });
  assert.equal((await saidEnd(stream))?.event_id, endId);
  await stream.close();
});

testWithNats("push exits on SIGTERM even if NATS dies during the shutdown", async (mirrored) => {
  await appendPayloads(mirrored, "b1", [1, 2, 3]);
  const pusher = startPush(mirrored);
  await untilPrinted(pusher, ({ stdout }) => stdout.startsWith("3 events"));
  mirrored.nats.freeze();
  const exit = end(pusher, "SIGTERM");
  await delay(100);
  await mirrored.nats.stop("SIGKILL");
  assert.equal(await exit, 0);
});

/** The NATS duplicate window, kept short so that the test outlasts it. */
const WINDOW_MS = 100;

testWithNats("push does not repeat another instance's messages after SIGSTOP", async (mirrored) => {
  const { nats } = mirrored;
  const { streams } = await jetstreamManager(await nats.connect());
  const duplicate_window = WINDOW_MS * 1e6;
  await streams.add({ name: STREAM, subjects: [`${STREAM}.>`], duplicate_window });
  await appendPayloads(mirrored, "b1", [1, 2, 3]);
  const frozen = startPush(mirrored);
  await untilPrinted(frozen, ({ stdout }) => /^3 events/m.test(stdout));
  signalChild(frozen.child, "SIGSTOP");
  const other = startPush(mirrored);
  await appendPayloads(mirrored, "b2", [4, 5]);
  await untilSequence(nats, 5, other);
  await end(other, "SIGTERM");
  await delay(5 * WINDOW_MS);
  signalChild(frozen.child, "SIGCONT");
  await appendPayloads(mirrored, "b3", [6]);
  await untilSequence(nats, 6, frozen);
  await end(frozen, "SIGTERM");
  await assertMirrors(mirrored);
});

testWithNats("push refills a stream that lost its latest messages", async (mirrored) => {
  const { nats } = mirrored;
  await appendPayloads(mirrored, "b1", [1, 2, 3]);
  const pusher = startPush(mirrored);
  await untilSequence(nats, 3, pusher);
  await nats.stop("SIGTERM");
  await cp(nats.storeDir, `${nats.storeDir}.copy`, { recursive: true });
  await nats.start();
  await appendPayloads(mirrored, "b2", [4, 5]);
  await untilSequence(nats, 5, pusher);
  await nats.stop("SIGTERM");
  await rm(nats.storeDir, { recursive: true });
  await cp(`${nats.storeDir}.copy`, nats.storeDir, { recursive: true });
  await nats.start();
  await untilSequence(nats, 5, pusher);
  await end(pusher, "SIGTERM");
  await assertMirrors(mirrored);
});

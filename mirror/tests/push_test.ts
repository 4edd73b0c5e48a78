/** `nats_bridge` under failures: the stream holds each event once, in order. */
import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { randomInteger, randomItem, seededRandom, testSeed } from "../../tools/support/random.ts";
import {
  appendPayloads,
  type Bridged,
  endBridge,
  startBridge,
  testWithNats,
} from "./support/nats_bridge.ts";
import {
  assertMirrors,
  lastSequence,
  pause,
  readCursor,
  readStream,
  STREAM,
  untilSequence,
} from "./support/nats_stream.ts";
import { signalChild, untilPrinted } from "../../tools/support/program.ts";

const seed = testSeed();

/** Payloads whose text is easily changed in transit: member order, escapes, numbers, nesting. */
const PAYLOADS: unknown[] = [
  { "10": 1, "9": 2, a: { "2": [], "1": {} } },
  { "\u{20ac}": "\r\n\u0000\u{1f600}\u2028</x>", "": null },
  [1e21, 1e-7, 0.1, -5, 9007199254740992],
  "text",
  { event_id: [{}, { event_id: '],"last_event_id":"' }] },
];

/** Appends until `isOver()`, never far ahead of the stream. @returns the number of events. */
async function ingest(bridged: Bridged, random: () => number, isOver: () => boolean) {
  let count = 0;
  for (let batch = 0; !isOver(); batch++) {
    const payloads = Array.from(
      { length: randomInteger(random, 1, 40) },
      () => randomItem(random, PAYLOADS),
    );
    const source = randomItem(random, ["shop", "crm.eu"]);
    const stream = randomItem(random, ["orders", "a.b", "x..y."]);
    count += (await appendPayloads(bridged, `b${batch}`, payloads, { source, stream })).events;
    while (!isOver() && count > 300 + await lastSequence(bridged.nats).catch(() => 0)) {
      await pause();
    }
  }
  return count;
}

testWithNats(`nats_bridge survives kills of itself and NATS (SEED=${seed})`, async (bridged) => {
  const random = seededRandom(seed);
  const { nats } = bridged;
  let isOver = false;
  const ingesting = ingest(bridged, random, () => isOver);
  for (let round = 0; round < 6; round++) {
    const bridge = startBridge(bridged);
    const kill = await lastSequence(nats) + randomInteger(random, 1, 150);
    await untilSequence(nats, kill, bridge);
    if (round === 3) {
      await nats.stop("SIGKILL");
      await nats.start();
      await untilSequence(nats, await lastSequence(nats) + 1, bridge);
      assert.match(bridge.output.stderr, /reconnecting/);
    }
    await endBridge(bridge, "SIGKILL");
  }
  isOver = true;
  const count = await ingesting;
  const bridge = startBridge(bridged);
  await untilSequence(nats, count, bridge);
  assert.equal(await endBridge(bridge, "SIGTERM"), 0);
  await assertMirrors(bridged);
  const subjects = new Set((await readStream(nats)).map(({ subject }) => subject));
  for (const subject of subjects) assert.match(subject, /^ground\.(shop|crm%2Eeu)\.[^.]+$/);
});

testWithNats("nats_bridge waits for NATS and the service", async (bridged) => {
  const { served, nats } = bridged;
  await appendPayloads(bridged, "b1", [1, 2, 3]);
  await nats.stop();
  const bridge = startBridge(bridged);
  await untilPrinted(bridge, ({ stderr }) => stderr.includes("connection refused"));
  await nats.start();
  await untilSequence(nats, 3, bridge);
  await served.stop("SIGKILL");
  await untilPrinted(bridge, ({ stderr }) => stderr.includes("ground.sock"));
  await served.start();
  await appendPayloads(bridged, "b2", [4]);
  await untilSequence(nats, 4, bridge);
  await endBridge(bridge, "SIGKILL");
  await assertMirrors(bridged);
});

testWithNats("nats_bridge exits on SIGINT with its cursor at the end", async (bridged) => {
  const { last_event_id } = await appendPayloads(bridged, "b1", [1, 2, 3]);
  const bridge = startBridge(bridged);
  await untilSequence(bridged.nats, 3, bridge);
  assert.equal(await endBridge(bridge, "SIGINT"), 0);
  assert.deepEqual(await readCursor(bridged.nats), { event_id: last_event_id, sequence: 3 });
  assert.equal(bridge.output.stderr, "");
});

/** The duplicate window of NATS, short enough for a test to outlast it. */
const WINDOW_MS = 100;

testWithNats("nats_bridge repeats no other instance's messages after SIGSTOP", async (bridged) => {
  const { nats } = bridged;
  const { streams } = await jetstreamManager(await nats.connect());
  const duplicate_window = WINDOW_MS * 1e6;
  await streams.add({ name: STREAM, subjects: [`${STREAM}.>`], duplicate_window });
  await appendPayloads(bridged, "b1", [1, 2, 3]);
  const frozen = startBridge(bridged);
  await untilPrinted(frozen, ({ stdout }) => /^3 events/m.test(stdout));
  signalChild(frozen.child, "SIGSTOP");
  const other = startBridge(bridged);
  await appendPayloads(bridged, "b2", [4, 5]);
  await untilSequence(nats, 5, other);
  await endBridge(other, "SIGTERM");
  await delay(5 * WINDOW_MS);
  signalChild(frozen.child, "SIGCONT");
  await appendPayloads(bridged, "b3", [6]);
  await untilSequence(nats, 6, frozen);
  await endBridge(frozen, "SIGTERM");
  await assertMirrors(bridged);
});

testWithNats("nats_bridge refills a stream that lost its latest messages", async (bridged) => {
  const { nats } = bridged;
  await appendPayloads(bridged, "b1", [1, 2, 3]);
  const bridge = startBridge(bridged);
  await untilSequence(nats, 3, bridge);
  await nats.stop("SIGTERM");
  await cp(nats.storeDir, `${nats.storeDir}.copy`, { recursive: true });
  await nats.start();
  await appendPayloads(bridged, "b2", [4, 5]);
  await untilSequence(nats, 5, bridge);
  await nats.stop("SIGTERM");
  await rm(nats.storeDir, { recursive: true });
  await cp(`${nats.storeDir}.copy`, nats.storeDir, { recursive: true });
  await nats.start();
  await untilSequence(nats, 5, bridge);
  await endBridge(bridge, "SIGTERM");
  await assertMirrors(bridged);
});

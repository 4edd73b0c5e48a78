/** `nats_bridge` and what may happen to it: the stream holds each event once, in order. */
import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { randomInteger, randomItem, seededRandom, testSeed } from "../support/random.ts";
import {
  appendPayloads,
  type Bridged,
  endBridge,
  startBridge,
  withBridged,
} from "./support/nats_bridge.ts";
import { NEEDS_NATS, withConnection } from "./support/nats_server.ts";
import {
  assertMirrors,
  lastSequence,
  pause,
  readCursor,
  readStream,
  STREAM,
  untilSequence,
  writeCursor,
} from "./support/nats_stream.ts";
import { untilPrinted } from "./support/run_script.ts";

const seed = testSeed();

/** Payloads whose text is easily lost on the way: member order, escapes, numbers, nesting. */
const PAYLOADS: unknown[] = [
  { "10": 1, "9": 2, a: { "2": [], "1": {} } },
  { "\u{20ac}": "\r\n\u0000\u{1f600}\u2028</x>", "": null },
  [1e21, 1e-7, 0.1, -5, 9007199254740992],
  "text",
  { event_id: [{}, { event_id: '],"last_event_id":"' }] },
];

/** Appends while `isOver` says no, never far ahead of the stream. @returns the number of events. */
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

test(`nats_bridge killed again and again, NATS too: each event once (SEED=${seed})`, {
  ...NEEDS_NATS,
}, () =>
  withBridged(async (bridged) => {
    const random = seededRandom(seed);
    const { served, nats } = bridged;
    let isOver = false;
    const ingesting = ingest(bridged, random, () => isOver);
    for (let round = 0; round < 6; round++) {
      const bridge = startBridge(bridged);
      await untilSequence(nats, await lastSequence(nats) + randomInteger(random, 1, 150));
      if (round === 3) {
        await nats.stop("SIGKILL");
        await nats.start();
        await untilSequence(nats, await lastSequence(nats) + 1);
        assert.match(bridge.output.stderr, /connecting again/);
      }
      await endBridge(bridge, "SIGKILL");
    }
    isOver = true;
    const count = await ingesting;
    const bridge = startBridge(bridged);
    await untilSequence(nats, count);
    assert.equal(await endBridge(bridge, "SIGTERM"), 0);
    await assertMirrors(nats, served.serving.fetch);
    const subjects = new Set((await readStream(nats)).map(({ subject }) => subject));
    for (const subject of subjects) assert.match(subject, /^ground\.(shop|crm%2Eeu)\.[^.]+$/);
  }));

test("nats_bridge waits for NATS and the service, and saves its cursor on SIGTERM", {
  ...NEEDS_NATS,
}, () =>
  withBridged(async (bridged) => {
    const { served, nats } = bridged;
    await nats.start();
    await nats.stop();
    const { last_event_id } = await appendPayloads(bridged, "b1", [1, 2, 3]);
    const bridge = startBridge(bridged);
    await untilPrinted(bridge, ({ stderr }) => stderr.includes("connection refused"));
    await nats.start();
    await untilSequence(nats, 3);
    await served.serving.stop("SIGKILL");
    await untilPrinted(bridge, ({ stderr }) => stderr.includes("ground.sock"));
    await served.restart();
    const second = await appendPayloads(bridged, "b2", [4]);
    await untilSequence(nats, 4);
    assert.equal(await endBridge(bridge, "SIGTERM"), 0);
    assert.ok(second.last_event_id > last_event_id);
    assert.deepEqual(await readCursor(nats), { event_id: second.last_event_id, sequence: 4 });
    await assertMirrors(nats, served.serving.fetch);
  }, { isStarted: false }));

test("nats_bridge goes on from the last message, whatever the cursor and the window say", {
  ...NEEDS_NATS,
}, () =>
  withBridged(async (bridged) => {
    const { served, nats } = bridged;
    const windowMs = 100;
    await withConnection(nats, async (connection) => {
      const { streams } = await jetstreamManager(connection);
      const duplicate_window = windowMs * 1e6;
      await streams.add({ name: STREAM, subjects: [`${STREAM}.>`], duplicate_window });
    });
    const { first_event_id } = await appendPayloads(bridged, "b1", [1, 2, 3]);
    const first = startBridge(bridged);
    await untilSequence(nats, 3);
    assert.equal(await endBridge(first, "SIGINT"), 0);
    const storedMs = Date.now();
    await writeCursor(nats, { event_id: first_event_id, sequence: 1 });
    await nats.stop("SIGKILL");
    while (Date.now() < storedMs + 2 * windowMs) await pause();
    await nats.start();
    await appendPayloads(bridged, "b2", [4, 5]);
    const second = startBridge(bridged);
    await untilSequence(nats, 5);
    await endBridge(second, "SIGTERM");
    await assertMirrors(nats, served.serving.fetch);
  }));

test(
  "nats_bridge fills up a stream whose end was lost",
  { ...NEEDS_NATS },
  () =>
    withBridged(async (bridged) => {
      const { served, nats } = bridged;
      await appendPayloads(bridged, "b1", [1, 2, 3]);
      const bridge = startBridge(bridged);
      await untilSequence(nats, 3);
      await nats.stop("SIGTERM");
      await cp(nats.storeDir, `${nats.storeDir}.copy`, { recursive: true });
      await nats.start();
      await appendPayloads(bridged, "b2", [4, 5]);
      await untilSequence(nats, 5);
      await nats.stop("SIGTERM");
      await rm(nats.storeDir, { recursive: true });
      await cp(`${nats.storeDir}.copy`, nats.storeDir, { recursive: true });
      await nats.start();
      await untilSequence(nats, 5);
      await endBridge(bridge, "SIGTERM");
      await assertMirrors(nats, served.serving.fetch);
    }),
);

test(
  "nats_bridge beside a second one: each event once",
  { ...NEEDS_NATS },
  () =>
    withBridged(async (bridged) => {
      const { served, nats } = bridged;
      const bridges = [startBridge(bridged), startBridge(bridged)];
      const payloads = Array.from({ length: 200 }, (_, index) => index);
      for (const batchId of ["b1", "b2", "b3"]) await appendPayloads(bridged, batchId, payloads);
      await untilSequence(nats, 600);
      for (const bridge of bridges) assert.equal(await endBridge(bridge, "SIGTERM"), 0);
      await assertMirrors(nats, served.serving.fetch);
    }),
);

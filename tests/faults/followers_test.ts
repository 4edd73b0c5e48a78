/**
 * Many followers of one server, while events are appended: each gets all of them in order, and the
 * server holds no more for them than its limits say, also for one that never reads.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { FOLLOW_RECORD_BYTES_MAX, LIVE_PAGES_BYTES_MAX } from "../../src/limits.ts";
import { peakMemoryBytes } from "../../bench/support/process_stats.ts";
import type { Serving } from "../../tools/support/program.ts";
import { withServing } from "../support/deployment.ts";
import { IdFollower } from "./support/id_follower.ts";
import { RECENT_COMMITS_BYTES_MAX } from "../../src/log/log.ts";
import { FOLLOW_PIECE_BYTES } from "../../src/api/follow_response.ts";

const FOLLOWERS = 200;
const EVENTS = 10_000;
const BATCH_EVENTS = 100;
/** Followers are opened so many at a time: a socket's queue of unaccepted connections is short. */
const OPENING_MAX = 50;
/** Followers that have not got all by then are hung up on, and tell how far they came. */
const DELIVERY_TIMEOUT_MS = 90_000;

const MIB = 1024 * 1024;
/** A runtime with the program in it, that has just parsed batches and not collected them. */
const BASE_BYTES = 256 * MIB;
/** What is appended besides while one follower reads nothing: its memory would be seen. */
const BULK_BATCHES = 192;
const BULK_BATCH_BYTES = MIB;
/**
 * A follower holds one record, and at the most a piece of it that the system has not taken, and one
 * on its way there. The followers share the newest commits and the records made of them.
 */
const FOLLOWER_BYTES = FOLLOW_RECORD_BYTES_MAX + 2 * FOLLOW_PIECE_BYTES;
const MEMORY_BYTES_MAX = BASE_BYTES + (FOLLOWERS + 1) * FOLLOWER_BYTES +
  RECENT_COMMITS_BYTES_MAX + LIVE_PAGES_BYTES_MAX;

interface Appending {
  name: string;
  batches: number;
  batchEvents: number;
  payload: string;
}

async function append({ fetch }: Serving, options: Appending): Promise<void> {
  const { name, batches, batchEvents, payload } = options;
  for (let number = 0; number < batches; number++) {
    const events = Array.from({ length: batchEvents }, (_, index) => ({
      stream: "orders",
      record_key: `${number}-${index}`,
      kind: "upserted",
      payload,
    }));
    const response = await fetch("/v1/events", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ batch_id: `${name}-${number}`, source: "shop", events }),
    });
    assert.equal(response.status, 200, await response.text());
  }
}

function appendAll(serving: Serving): Promise<void> {
  const batches = EVENTS / BATCH_EVENTS;
  return append(serving, { name: "small", batches, batchEvents: BATCH_EVENTS, payload: "" });
}

/** Appends far more than the server may hold for a follower. */
function appendBulk(serving: Serving): Promise<void> {
  const payload = "x".repeat(BULK_BATCH_BYTES);
  return append(serving, { name: "bulk", batches: BULK_BATCHES, batchEvents: 1, payload });
}

function closeAll(followers: readonly IdFollower[]): void {
  for (const follower of followers) follower.close();
}

/** Ids of all events, one after the other, as replay returns them. */
async function replayedIds({ fetch }: Serving): Promise<Buffer> {
  const page = await (await fetch(`/v1/events?limit=${EVENTS}`)).json();
  assert.equal(page.events.length, EVENTS);
  return Buffer.from(page.events.map((event: { event_id: string }) => event.event_id).join(""));
}

test(`${FOLLOWERS} followers get ${EVENTS} events in order while they are appended`, (context) =>
  withServing(async (deployment) => {
    const { serving, socketPath } = deployment;
    const followers: IdFollower[] = [];
    try {
      const stalled = await IdFollower.open(socketPath, EVENTS);
      followers.push(stalled);
      stalled.pause();
      while (followers.length <= FOLLOWERS) {
        const openings = Array.from(
          { length: OPENING_MAX },
          () => IdFollower.open(socketPath, EVENTS),
        );
        followers.push(...await Promise.all(openings));
      }
      const [, ...reading] = followers;
      const timer = setTimeout(() => closeAll(followers), DELIVERY_TIMEOUT_MS);
      await Promise.all([appendAll(serving), ...reading.map((follower) => follower.full())])
        .finally(() => clearTimeout(timer));
      const expected = await replayedIds(serving);
      for (const { ids } of reading) assert.ok(ids.equals(expected), "the same ids in order");

      closeAll(reading);
      await appendBulk(serving);
      const peak = peakMemoryBytes(serving.child.pid!);
      if (peak === null) context.diagnostic("memory is not checked: there is no /proc");
      else assert.ok(peak < MEMORY_BYTES_MAX, `${peak} bytes, at most ${MEMORY_BYTES_MAX}`);

      assert.ok(stalled.events < EVENTS, "it has not read all");
      stalled.resume();
      await stalled.full();
      assert.ok(stalled.ids.equals(expected), "a slow follower loses nothing");
    } finally {
      closeAll(followers);
    }
    await deployment.stop();
  }));

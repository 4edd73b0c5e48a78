/**
 * Many followers of one server while events are appended. Each gets all events, and the server's
 * memory stays within its limits, even if one follower never reads. It then reads them in order.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FOLLOW_RECORD_BYTES_MAX, LIVE_PAGES_BYTES_MAX } from "../../src/limits.ts";
import { Followers } from "../../bench/support/followers.ts";
import { peakMemoryBytes } from "../../bench/support/process_stats.ts";
import { allEvents, commit } from "../contract/support/api.ts";
import { FollowReader } from "../contract/support/follow_reader.ts";
import { withServing } from "../support/deployment.ts";
import { batch } from "../support/batches.ts";
import { FOLLOW_PIECE_BYTES } from "../../src/api/follow_response.ts";

const FOLLOWERS = 200;
const EVENTS = 5_000;
const BATCH_EVENTS = 100;
/** Time limit for delivery. When it expires, the test reports each follower's progress. */
const DELIVERY_TIMEOUT_MS = 90_000;

const MIB = 1024 * 1024;
/** Memory of a runtime that has parsed batches but not yet collected the garbage. */
const BASE_BYTES = 384 * MIB;
/** Data appended while one follower reads nothing. Buffering it would show in memory use. */
const BULK_BATCHES = 192;
const BULK_PAYLOAD = "x".repeat(MIB);
/**
 * Memory per follower: a record and up to two of its chunks, one being sent and one that the system
 * has not accepted yet. Followers share the records made from the newest commits.
 */
const FOLLOWER_BYTES = FOLLOW_RECORD_BYTES_MAX + 2 * FOLLOW_PIECE_BYTES;
const MEMORY_BYTES_MAX = BASE_BYTES + (FOLLOWERS + 1) * FOLLOWER_BYTES +
  LIVE_PAGES_BYTES_MAX;

/** Counts the events that one follower receives. */
class Received {
  events = 0;

  take(events: number): void {
    this.events += events;
  }
}

test(`${FOLLOWERS} followers get ${EVENTS} events in order while they are appended`, (context) =>
  withServing(async (deployment) => {
    const { serving, socketPath } = deployment;
    const all: Received[] = [];
    const receiver = () => {
      const received = new Received();
      all.push(received);
      return received.take.bind(received);
    };
    // The stalled follower reads only when the next record is requested.
    const stalled = await FollowReader.open(socketPath);
    const followers = await Followers.open({ socketPath, count: FOLLOWERS, after: null, receiver });
    const append = async () => {
      for (let number = 0; number < EVENTS / BATCH_EVENTS; number++) {
        await commit(socketPath, batch(`small-${number}`, BATCH_EVENTS, ""));
      }
    };
    const deadlineMs = performance.now() + DELIVERY_TIMEOUT_MS;
    const delivered = async () => {
      while (all.some(({ events }) => events < EVENTS)) {
        assert.ok(performance.now() < deadlineMs, `${all.map(({ events }) => events)}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    try {
      await Promise.race([Promise.all([append(), delivered()]), followers.failed]);
      const expected = await allEvents(socketPath);
      assert.ok(all.every(({ events }) => events === EVENTS), "each event once");
      followers.close();
      for (let number = 0; number < BULK_BATCHES; number++) {
        await commit(socketPath, batch(`bulk-${number}`, 1, BULK_PAYLOAD));
      }
      const peak = peakMemoryBytes(serving.child.pid!);
      if (peak === null) context.diagnostic("memory is not checked: /proc is not available");
      else assert.ok(peak < MEMORY_BYTES_MAX, `${peak} bytes, at most ${MEMORY_BYTES_MAX}`);

      await stalled.catchUp();
      const followed = await stalled.takeLive(EVENTS);
      assert.deepEqual(followed.slice(0, EVENTS), expected, "a slow follower loses nothing");
    } finally {
      stalled.close();
      followers.close();
    }
    await deployment.stop();
  }));

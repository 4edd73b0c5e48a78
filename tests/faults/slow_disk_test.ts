/**
 * A disk whose syncs take as long as the test decides. Readers get responses while a sync is held:
 * they never wait for the sync of a commit that they do not need.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import {
  allEvents,
  batchWith,
  commit,
  event,
  replayPage,
  streamsPage,
} from "../contract/support/api.ts";
import { FollowReader } from "../contract/support/follow_reader.ts";
import { withServedLog } from "../contract/support/served_log.ts";
import { SealingSteps, untilQuiet } from "../support/sealing_steps.ts";
import type { Operation, SimulatedDisk } from "../support/simulated_disk.ts";

/** Commits in the history that is sealed while it is read. */
const COMMITS = 4;
/** Time limit after which a reader is considered to be waiting for the held sync. */
const ANSWER_TIMEOUT_MS = 30_000;

/** Holds every sync on a disk until the test releases it. */
class HeldSyncs {
  readonly #storage: SimulatedDisk;
  readonly #held: (() => void)[] = [];
  #onHeld: () => void = () => {};

  constructor(storage: SimulatedDisk) {
    this.#storage = storage;
    storage.hook = (operation) => this.#hold(operation);
  }

  get count(): number {
    return this.#held.length;
  }

  /** Resolves when a sync is held. */
  async reached(): Promise<void> {
    while (this.#held.length === 0) await new Promise<void>((resolve) => this.#onHeld = resolve);
  }

  /** Completes the sync that has been held longest. */
  release(): void {
    this.#held.shift()!();
  }

  /** Waits for a reader, which must not wait for a sync in turn. */
  answered<T>(reading: Promise<T>): Promise<T> {
    const late = setTimeout(ANSWER_TIMEOUT_MS, null, { ref: false });
    return Promise.race([reading, late.then(() => assert.fail("a reader waited for a sync"))]);
  }

  /** Completes all syncs, including later ones. */
  end(): void {
    this.#storage.hook = null;
    while (this.#held.length > 0) this.release();
  }

  #hold({ kind }: Operation): Promise<null> | null {
    if (kind !== "sync" && kind !== "syncFolder") return null;
    return new Promise((resolve) => {
      this.#held.push(() => resolve(null));
      this.#onHeld();
    });
  }
}

/** Commits a batch of one event, whose record key is the batch id. */
function commitKey(socketPath: string, key: string) {
  return commit(socketPath, batchWith({ batch_id: key, events: [event({ record_key: key })] }));
}

const keysOf = (events: { record_key: string }[]) => events.map(({ record_key }) => record_key);

/** The record keys that each kind of reader sees. All kinds must agree. */
async function readKeys(socketPath: string): Promise<string[]> {
  const follow = await FollowReader.open(socketPath);
  const [first, followed, replayed, streams] = await Promise.all([
    replayPage(socketPath, "record_key=a"),
    follow.catchUp(),
    allEvents(socketPath),
    streamsPage(socketPath),
  ]);
  follow.close();
  const keys = keysOf(replayed);
  assert.deepEqual(keysOf(first.events), ["a"]);
  assert.deepEqual(keysOf(followed), keys);
  assert.deepEqual(streams.streams.map(({ event_count }) => event_count), [keys.length]);
  return keys;
}

test("readers are answered during every slow sync of a commit, of a rotation and of a seal", () =>
  withServedLog(async ({ socketPath, storage }) => {
    const keys = ["a"];
    await commitKey(socketPath, "a");
    const live = await FollowReader.open(socketPath);
    const followed = keysOf(await live.catchUp());
    const syncs = new HeldSyncs(storage);
    try {
      let isOver = false;
      const writing = (async () => {
        for (let n = 1; n <= COMMITS; n++) {
          keys.push(`${n}`);
          await commitKey(socketPath, `${n}`);
        }
        await untilQuiet(storage);
        isOver = true;
      })();
      let moments = 0;
      while (!isOver || syncs.count > 0) {
        await Promise.race([syncs.reached(), writing]);
        if (syncs.count === 0) continue;
        const seen = await syncs.answered(readKeys(socketPath));
        // The last commit may be in progress. Those before it are visible.
        assert.deepEqual(seen, keys.slice(0, seen.length));
        assert.ok(seen.length >= keys.length - 1, `${seen.length} events of ${keys.length}`);
        while (followed.length < seen.length) {
          followed.push(...keysOf(await syncs.answered(live.takeLive(1))));
        }
        moments += 1;
        syncs.release();
        await untilQuiet(storage);
      }
      assert.deepEqual(followed, keys);
      const segments = [...storage.tree().keys()].filter((path) => path.endsWith(".parquet"));
      assert.ok(segments.length > 1, `${segments.length} segments`);
      assert.ok(moments > 5 * COMMITS, `${moments} moments`);
    } finally {
      syncs.end();
    }
  }, { sealingOn: new SealingSteps().on() }));

/**
 * A consumer that follows the log across kills and restarts, with or without a filter, fast or
 * slow. Occasionally it disconnects and then follows from a different position.
 */
import { randomInteger } from "../support/random.ts";
import { OBSERVED_EVENTS_MAX } from "./bounds.ts";
import { type ClientLoad, pause } from "./load.ts";
import { randomFilter, randomPosition } from "./reader.ts";
import { Violation } from "./violation.ts";

/** Maximum duration of a follow, in milliseconds. */
const STAY_MS_MAX = 20_000;
/** Maximum delay of a slow follower per record, in milliseconds. */
const SLOWNESS_MS_MAX = 100;
const PAGE_EVENTS_MAX = 500;

/** Runs until the load ends. @throws {Violation} or any other error that occurs. */
export async function runFollower(load: ClientLoad): Promise<void> {
  const { ending, failing, random, tally } = load;
  while (!ending.aborted) {
    const stayMs = randomInteger(random, 0, STAY_MS_MAX);
    const over = AbortSignal.any([AbortSignal.timeout(stayMs), ending]);
    try {
      await follow(load, AbortSignal.any([over, failing]));
    } catch (error) {
      if (failing.aborted || !over.aborted) throw error;
    }
    tally.add("follows");
  }
}

async function follow(load: ClientLoad, signal: AbortSignal): Promise<void> {
  const { client, name, observations, random, tally } = load;
  const filter = randomFilter(load);
  const slownessMs = random() < 0.3 ? random() * SLOWNESS_MS_MAX : 0;
  const limit = randomInteger(random, 1, PAGE_EVENTS_MAX);
  const start = randomPosition(load);
  let [after, through, hashes] = [start, start, [] as string[]];
  const handIn = () => {
    if (through !== null) {
      observations.push({ observer: name, through, seen: { filter, after, hashes } });
    }
    [after, hashes] = [through, []];
  };
  try {
    for await (const record of client.followRecords({ ...filter, after, limit, signal })) {
      if (record.type === "end") throw new Violation(`${name} ended: ${JSON.stringify(record)}`);
      if (record.type === "events") {
        hashes.push(...record.events.map(({ event_hash }) => event_hash));
        through = record.nextAfter;
        tally.add("followed", record.events.length);
        if (hashes.length >= OBSERVED_EVENTS_MAX) handIn();
      }
      if (slownessMs > 0) await pause(load, slownessMs);
    }
  } finally {
    handIn();
  }
}

/** Compares a running service with one recovered from its files. */
import assert from "node:assert/strict";
import type { EventLog, EventLogService } from "../../../src/service/event_log.ts";
import type { Mutation } from "../../support/history.ts";
import { type Random, randomItem, seededRandom } from "../../../tools/support/random.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { ALL_STREAMS, replayText } from "../../support/stream_listing.ts";
import { answerTo } from "../../support/submitted.ts";
import { TEST_TIME_MS } from "../../support/test_log.ts";
import { openWatchedService } from "../../support/watched_log.ts";
import { treeHash } from "./crash_points.ts";
import { steadyTime } from "./crash_session.ts";
import type { RandomMutations } from "../../support/random_mutations.ts";
import type { KnownHistory } from "../../support/known_history.ts";

/** Mutations that are asked for again. */
const REPEATED = 12;
const ANCHORS = 2;

/** What a process knows by now. */
export interface Compared {
  service: EventLogService;
  /** The files of the running service. */
  tree: Tree;
  known: KnownHistory;
  mutations: RandomMutations;
  random: Random;
}

/** A start on the files of a running service changes no byte and has nothing to repair. */
export async function reopen({ tree }: Pick<Compared, "tree">): Promise<EventLogService> {
  const disk = new SimulatedDisk(tree);
  const reports: string[] = [];
  const reopened = await openWatchedService({
    storage: disk,
    ...steadyTime(TEST_TIME_MS, seededRandom(2)),
    report: (line) => void reports.push(line),
  });
  assert.deepEqual(reports, [], "nothing is left to repair");
  assert.equal(treeHash(disk.tree()), treeHash(tree), "a start leaves identical bytes");
  return reopened;
}

/** Events, streams and answers of a service are what the model says; streams at some events. */
async function look(
  log: EventLog,
  { known, repeated, anchors }: {
    known: KnownHistory;
    repeated: readonly Mutation[];
    anchors: readonly (string | undefined)[];
  },
) {
  assert.ok(await replayText(log) === known.text, "all events are there, byte by byte");
  assert.deepEqual((await log.streams(ALL_STREAMS)).streams, known.model.streams());
  for (const mutation of repeated) {
    const expected = known.model.answer(mutation);
    if (expected !== null) assert.deepEqual(await answerTo(log, mutation), expected);
  }
  return await Promise.all(anchors.map((through) => log.streams({ ...ALL_STREAMS, through })));
}

/** Compares a service with what is known, and with `others` that are recovered from its files. */
export async function compare(
  { service, known, mutations, random }: Compared,
  others: readonly EventLogService[] = [],
): Promise<void> {
  const anchors = Array.from({ length: ANCHORS }, () => randomItem(random, known.events)?.event_id);
  const repeated = [
    ...Array.from({ length: REPEATED }, () => mutations.before()),
    ...mutations.sources.map((source): Mutation => ({ kind: "retire", source })),
  ];
  const seen = await look(service, { known, repeated, anchors });
  for (const other of others) {
    const seenAnew = await look(other, { known, repeated, anchors });
    assert.deepEqual(seenAnew, seen, "streams at an event");
  }
}

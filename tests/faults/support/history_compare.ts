/** Compares services of one log, running or recovered from its files, with what is known. */
import assert from "node:assert/strict";
import { type Random, randomItem } from "../../../tools/support/random.ts";
import type { EventLog } from "../../../src/service/event_log.ts";
import type { Mutation } from "../../support/history.ts";
import type { KnownHistory } from "../../support/known_history.ts";
import type { RandomMutations } from "../../support/random_mutations.ts";
import { ALL_STREAMS, replayText } from "../../support/stream_listing.ts";
import { answerTo } from "../../support/submitted.ts";

/** Mutations that are asked for again. */
const REPEATED = 12;
const ANCHORS = 2;

/** Events, streams and answers of services are what the model says, streams at some events too. */
export async function compare(
  logs: readonly EventLog[],
  { known, mutations, random }: { known: KnownHistory; mutations: RandomMutations; random: Random },
): Promise<void> {
  const anchors = Array.from({ length: ANCHORS }, () => randomItem(random, known.events)?.event_id);
  const repeated = [
    ...Array.from({ length: REPEATED }, () => mutations.before()),
    ...mutations.sources.map((source): Mutation => ({ kind: "retire", source })),
  ];
  const seen = await Promise.all(logs.map(async (log) => {
    assert.ok(await replayText(log) === known.text, "all events are there, byte by byte");
    assert.deepEqual((await log.streams(ALL_STREAMS)).streams, known.model.streams());
    for (const mutation of repeated) {
      const expected = known.model.answer(mutation);
      if (expected !== null) assert.deepEqual(await answerTo(log, mutation), expected);
    }
    return await Promise.all(anchors.map((through) => log.streams({ ...ALL_STREAMS, through })));
  }));
  for (const other of seen) assert.deepEqual(other, seen[0], "streams at an event");
}

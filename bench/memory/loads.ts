/** The kinds of load under which memory is measured. Clients never pause. */
import type { Buffer } from "node:buffer";
import { type LogFacts, positionAt } from "../scale/build.ts";
import { bulkBatch, SOURCES, streamCursor, streamsRequest } from "../scale/history.ts";
import type { Workload } from "../support/load.ts";
import { keyRequest, pageRequest, postRequest } from "../support/requests.ts";
import { appending, ingestWorkload, requesting } from "../support/workloads.ts";

const LARGE_BATCH_EVENTS = 10_000;
/** Size of the batches that followers read. */
const FOLLOWED_BATCH_EVENTS = 100;
/** Of this kind, one client appends, and the others follow. */
const FOLLOWERS = "followers";

type WorkloadOf = (facts: LogFacts, idPrefix: string) => Workload;

/** Each kind of load: its number of clients, and what each does. */
const LOADS: Record<string, [clients: number, WorkloadOf]> = {
  "batches": [4, (_, idPrefix) => ingestWorkload(idPrefix, LARGE_BATCH_EVENTS)],
  "singles": [16, singles],
  "pages-1000": [8, (facts) => questions(() => pageRequest(anywhere(facts), 1000))],
  "pages-10000": [8, (facts) => questions(() => pageRequest(anywhere(facts), 10_000))],
  "keys": [8, (facts) => questions(() => keyRequest(below(facts.bulkEvents)))],
  "streams": [8, (facts) =>
    questions(() => {
      const cursor = streamCursor(below(SOURCES));
      return streamsRequest(`&after=${cursor}&through=${anywhere(facts)}`);
    })],
  [FOLLOWERS]: [8, (_, idPrefix) => ingestWorkload(idPrefix, FOLLOWED_BATCH_EVENTS)],
};
/** Batches of one event that all clients have sent. */
let singlesSent = 0;

export const KINDS: readonly string[] = Object.keys(LOADS);

export interface Load {
  workloads: Workload[];
  /** Position where each follower starts. */
  followFrom: string[];
}

/**
 * Combines several kinds of load on a log.
 * @param id makes the batch ids unique.
 */
export function loadOf(id: string, kinds: readonly string[], facts: LogFacts): Load {
  const load: Load = { workloads: [], followFrom: [] };
  for (const kind of kinds) {
    const [clients, workloadOf] = LOADS[kind]!;
    for (let client = 0; client < clients; client++) {
      if (kind === FOLLOWERS && client > 0) load.followFrom.push(anywhere(facts));
      else load.workloads.push(workloadOf(facts, `${id}-${kind}-${client}`));
    }
  }
  return load;
}

/** Appends batches of one event, each in the next stream and with another key. */
function singles(facts: LogFacts, idPrefix: string): Workload {
  const next = () => bulkBatch("single", facts.bulkBatches + singlesSent++, idPrefix);
  return appending(() => postRequest(next()), 1);
}

/** Sends requests that append nothing. */
function questions(next: () => Buffer): Workload {
  return requesting(next, 0);
}

function anywhere(facts: LogFacts): string {
  return positionAt(facts, Math.random());
}

function below(end: number): number {
  return Math.floor(Math.random() * end);
}

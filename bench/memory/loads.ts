/** The kinds of load under which memory is measured. Clients never pause. */
import type { Buffer } from "node:buffer";
import { type LogFacts, positionAt } from "../scale/built_log.ts";
import {
  BulkBatches,
  bulkKeyRequest,
  SOURCES,
  streamCursor,
  streamsRequest,
} from "../scale/history.ts";
import type { Workload } from "../support/load.ts";
import { pageRequest } from "../support/requests.ts";
import { ingestWorkload, requireCommitted, requireOk } from "../support/workloads.ts";

/** Number of clients for each kind of load. */
const CLIENTS = {
  batches: 4,
  singles: 16,
  "pages-1000": 8,
  "pages-10000": 8,
  keys: 8,
  streams: 8,
  followers: 8,
};
export type Kind = keyof typeof CLIENTS;
export const KINDS: readonly Kind[] = Object.keys(CLIENTS) as Kind[];

const LARGE_BATCH_EVENTS = 10_000;
/** Size of the batches that followers read. */
const FOLLOWED_BATCH_EVENTS = 100;

export interface Load {
  workloads: Workload[];
  /** Position where each follower starts. */
  followFrom: string[];
}

/**
 * Combines several kinds of load on a log.
 * @param row makes the batch ids in this row unique.
 * @param facts describes the log. Batches of one event advance its `nextBatch`.
 */
export function loadOf(row: string, kinds: readonly Kind[], facts: LogFacts): Load {
  const load: Load = { workloads: [], followFrom: [] };
  for (const kind of kinds) {
    for (let client = 0; client < CLIENTS[kind]; client++) {
      const idPrefix = `${row}-${kind}-${client}`;
      if (kind !== "followers") load.workloads.push(workloadOf(kind, idPrefix, facts));
      else if (client > 0) load.followFrom.push(anywhere(facts));
      else load.workloads.push(ingestWorkload(idPrefix, FOLLOWED_BATCH_EVENTS));
    }
  }
  return load;
}

function workloadOf(
  kind: Exclude<Kind, "followers">,
  idPrefix: string,
  facts: LogFacts,
): Workload {
  switch (kind) {
    case "batches":
      return ingestWorkload(idPrefix, LARGE_BATCH_EVENTS);
    case "singles":
      return singles(facts);
    case "pages-1000":
      return questions(() => pageRequest(anywhere(facts), 1000));
    case "pages-10000":
      return questions(() => pageRequest(anywhere(facts), 10_000));
    case "keys":
      return questions(() => bulkKeyRequest(Math.floor(Math.random() * facts.bulkEvents)));
    case "streams":
      return questions(() => {
        const cursor = streamCursor(Math.floor(Math.random() * SOURCES));
        return streamsRequest(`&after=${cursor}&through=${anywhere(facts)}`);
      });
  }
}

/** Returns batches of one event, each in the next stream and with a unique key. */
function singles(facts: LogFacts): Workload {
  const requests = new BulkBatches("single");
  return {
    next: () => requests.request(facts.nextBatch++),
    accept(response) {
      requireCommitted(response);
      return 1;
    },
  };
}

function questions(next: () => Buffer): Workload {
  return {
    next,
    accept(response) {
      requireOk(response);
      return 0;
    },
  };
}

function anywhere(facts: LogFacts): string {
  return positionAt(facts, Math.random());
}

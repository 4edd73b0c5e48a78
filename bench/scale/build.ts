/** Builds a log through the HTTP API, seals it, and fills its tail. */
import type { Deployment, Server } from "../support/deployment.ts";
import { ask } from "../support/exchange.ts";
import { runLoad, type Workload } from "../support/load.ts";
import { nothingPending, sealedPart, tailBytes } from "../support/log_files.ts";
import { progress } from "../support/options.ts";
import { memoryBytes, peakMemoryBytes } from "../support/process_stats.ts";
import { RawClient } from "../support/raw_client.ts";
import { megabytes, rounded } from "../support/report.ts";
import { withServer } from "../support/with_deployment.ts";
import { requireCommitted } from "../support/workloads.ts";
import type { RawResponse } from "../support/response_parser.ts";
import { buildDirectly } from "./build_directly.ts";
import {
  batchesPerPosition,
  type BuiltHistory,
  type BuiltLog,
  type LogFacts,
  writeFacts,
} from "./built_log.ts";
import type { Figures } from "./figures.ts";
import {
  batchEventsOf,
  BulkBatches,
  OLD_STREAMS_MAX,
  oldBatch,
  oldStreamName,
  PAGE_EVENTS,
  type Shape,
  streamsOf,
} from "./history.ts";

/** Number of clients, enough that many appends share each fdatasync. */
const CLIENTS: Record<Shape, number> = { batch: 4, single: 64, tiny: 64 };
/** Batch numbers reserved for one filling of the tail. */
const TAIL_BATCHES_MAX = 500_000;
/** Batches between checks of the tail's size. */
const TAIL_LOOK_BATCHES: Record<Shape, number> = { batch: 1, single: 100, tiny: 100 };
const SEALING_TIMEOUT_MS = 1_200_000;
/** If the server has sealed less than this share of the log, the `seal` command seals the rest. */
const SEALED_SHARE_MIN = 0.8;
const LONG_MS = 24 * 3_600_000;
const COMMITTED = '"status":"committed"';

/** Builds a log of `events` events, all of them sealed. */
export async function buildLog(
  deployment: Deployment,
  shape: Shape,
  events: number,
): Promise<BuiltLog> {
  const oldStreams = Math.min(OLD_STREAMS_MAX, Math.ceil(events / 10));
  const bulk = { shape, batches: Math.ceil((events - oldStreams) / batchEventsOf(shape)) };
  progress(`building ${events} events, ${shape}`);
  const built = shape === "tiny"
    ? await buildDirectly(deployment.folder, oldStreams, bulk.batches)
    : await buildServed(deployment, oldStreams, bulk);
  const sealed = await sealRest(deployment, events);
  const bulkEvents = built.batches * batchEventsOf(shape);
  const streams = { "streams": streamsOf(oldStreams, bulkEvents) };
  const log: BuiltLog = {
    deployment,
    facts: {
      shape,
      bulkBatches: built.batches,
      bulkEvents,
      oldStreams: built.old,
      positions: built.positions,
      figures: { ...streams, ...built.figures, ...sealed },
      nextBatch: built.batches,
      endAfter: built.positions.at(-1)!,
      askings: 0,
    },
  };
  await writeFacts(log);
  return log;
}

async function buildServed(
  deployment: Deployment,
  oldStreams: number,
  bulk: Bulk,
): Promise<BuiltHistory> {
  return await withServer(deployment, async (server) => {
    const old = await appendOld(deployment, oldStreams);
    const appended = await appendBulk(deployment, server, bulk);
    const figures = {
      ...appended.figures,
      ...await sealedBehind(deployment),
      ...servingMemory(server),
    };
    return { old, ...appended, figures };
  });
}

/** Waits for the server's background sealing. */
async function sealedBehind(deployment: Deployment): Promise<Figures> {
  const startMs = performance.now();
  await nothingPending(deployment, SEALING_TIMEOUT_MS);
  return {
    "sealed while serving: events": (await sealedPart(deployment)).events,
    "sealed while serving: s behind": rounded((performance.now() - startMs) / 1000, 1),
  };
}

function servingMemory({ pid }: Server): Figures {
  return {
    "serve after building MB": megabytes(memoryBytes(pid)),
    "serve while building, peak MB": megabytes(peakMemoryBytes(pid)),
  };
}

async function appendOld(deployment: Deployment, count: number): Promise<LogFacts["oldStreams"]> {
  const client = await RawClient.connect(deployment.socketPath);
  const old: LogFacts["oldStreams"] = {};
  for (let number = 0; number < count; number++) {
    const { response } = await ask(client, { request: oldBatch(number), expected: COMMITTED });
    old[oldStreamName(number)] = lastEventId(response);
  }
  client.close();
  return old;
}

interface Bulk {
  shape: Shape;
  batches: number;
}

async function appendBulk(deployment: Deployment, server: Server, { shape, batches }: Bulk) {
  const batchEvents = batchEventsOf(shape);
  const positions: string[] = [];
  const everyBatches = batchesPerPosition(batches);
  let next = 0;
  const client = (): Workload => {
    const requests = BulkBatches.of(shape);
    let number = 0;
    return {
      next() {
        number = next++;
        return requests.request(number);
      },
      accept(response) {
        requireCommitted(response);
        if (number % everyBatches === 0) positions.push(lastEventId(response));
        return batchEvents;
      },
      bytes: (sent) => sent.length,
    };
  };
  const load = await runLoad({
    socketPath: deployment.socketPath,
    serverPid: server.pid,
    workloads: Array.from({ length: CLIENTS[shape] }, client),
    measureMs: LONG_MS,
    eventsMax: batches * batchEvents,
  });
  positions.sort();
  const figures: Figures = {
    "append while building events/s": Math.round(load.events / load.seconds),
    "append while building p50 ms": rounded(load.latencies.quantileMs(0.5), 2),
    "append while building p99 ms": rounded(load.latencies.quantileMs(0.99), 2),
  };
  return { batches: next, positions, figures };
}

/** Runs `service seal` on the part that the server has not sealed. */
async function sealRest(deployment: Deployment, events: number): Promise<Figures> {
  const before = await sealedPart(deployment);
  if (before.events >= events) throw new Error("the server left nothing for seal to measure");
  const { tookMs, peakBytes } = await deployment.run(["seal"], peakMemoryBytes);
  const after = await sealedPart(deployment);
  const sealed = after.events - before.events;
  if (after.events < events * SEALED_SHARE_MIN) {
    throw new Error(`only ${after.events} of ${events} events are sealed`);
  }
  return {
    "seal: events": sealed,
    "seal: events/s": Math.round(sealed / tookMs * 1000),
    "seal peak MB": megabytes(peakBytes),
  };
}

/** Appends until the tail has the given size, one batch per commit. */
export async function fillTail(log: BuiltLog, wantedBytes: number): Promise<void> {
  const { deployment, facts } = log;
  if (await tailBytes(deployment) >= wantedBytes) return;
  progress(`filling the tail to ${rounded(wantedBytes / 1e6, 1)} MB`);
  const requests = BulkBatches.of(facts.shape);
  const first = facts.nextBatch;
  facts.nextBatch += TAIL_BATCHES_MAX;
  await writeFacts(log);
  const lastIds: string[] = [];
  await withServer(deployment, async ({ pid }) => {
    const client = await RawClient.connect(deployment.socketPath);
    do {
      const request = requests.request(first + lastIds.length);
      const { response } = await ask(client, { request, expected: COMMITTED });
      lastIds.push(lastEventId(response));
    } while (
      lastIds.length % TAIL_LOOK_BATCHES[facts.shape] !== 0 ||
      await tailBytes(deployment) < wantedBytes
    );
    client.close();
    return pid;
  });
  facts.endAfter = lastIds.at(-1 - Math.ceil(PAGE_EVENTS / batchEventsOf(facts.shape))) ??
    facts.positions.at(-1)!;
  await writeFacts(log);
}

/** Returns the last event in a receipt. */
function lastEventId({ bodyEnd }: RawResponse): string {
  const id = /"last_event_id":"([0-9a-f-]+)"/.exec(bodyEnd.toString("latin1"))?.[1];
  if (id === undefined) throw new Error(`no receipt: ${bodyEnd}`);
  return id;
}

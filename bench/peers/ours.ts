/** Measures this service for the table rows that need a running server. */
import { open } from "node:fs/promises";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import {
  type Deployment,
  ROTATE_NEVER_BYTES,
  type RuntimeName,
  type Server,
} from "../support/deployment.ts";
import type { Workload } from "../support/load.ts";
import type { RawResponse } from "../support/response_parser.ts";
import { fill, withDeployment, withServer } from "../support/with_deployment.ts";
import { ingestWorkload, replayWorkload } from "../support/workloads.ts";
import type { Connection } from "./connection.ts";
import { type LoadClient, type LoadTimes, measureLoad } from "./load.ts";
import type { Measurement } from "./measurement.ts";
import { measureDelivery, openOurs } from "./our_delivery.ts";
import {
  type BenchContext,
  FILL_BATCH_EVENTS,
  INGEST_ROWS,
  type IngestRow,
  PAGE_EVENTS,
  type Subject,
} from "./rows.ts";

/** The start of a commit in the tail, made durable by one fdatasync. No event contains this. */
const COMMIT_START = Buffer.from('{"commit":{');
const READ_BYTES = 1024 * 1024;

export function oursSubject(serverRuntime: RuntimeName, context: BenchContext): Subject {
  const variant = (measure: (deployment: Deployment) => Promise<Measurement>) => [{
    name: serverRuntime,
    isSameWork: false,
    measure: () => withDeployment({ serverRuntime, parent: context.folder }, measure),
  }];
  return {
    name: "ours",
    variantsOf(rowName) {
      const row = INGEST_ROWS[rowName];
      if (row !== undefined) {
        return variant((deployment) => measureIngest(deployment, row, context));
      }
      if (rowName === "replay-tail") {
        return variant((deployment) => measureTailReplay(deployment, context));
      }
      if (rowName === "deliver") {
        return variant((deployment) =>
          withServer(
            deployment,
            ({ pid }) => measureDelivery({ socketPath: deployment.socketPath, pid }, context),
          )
        );
      }
      return [];
    },
  };
}

/** Returns one workload per client. */
export function ingestWorkloads({ clients, batchEvents }: IngestRow): Workload[] {
  return Array.from(
    { length: clients },
    (_, client) => ingestWorkload(`client-${client}`, batchEvents),
  );
}

/** Drives a server that speaks the service's protocol with one client per workload. */
export async function measureWorkloads(
  workloads: Workload[],
  { socketPath }: Pick<Deployment, "socketPath">,
  { pid }: Pick<Server, "pid">,
  times: LoadTimes,
): Promise<Measurement> {
  const clients = await Promise.all(
    workloads.map(async (workload) => clientOf(await openOurs(socketPath), workload)),
  );
  return await measureLoad(clients, pid, times);
}

function clientOf(connection: Connection<RawResponse>, workload: Workload): LoadClient {
  return {
    exchange(done, failed) {
      connection.send(workload.next(), 1, (response) => {
        let events: number;
        try {
          events = workload.accept(response);
        } catch (error) {
          return failed(error as Error);
        }
        done(events);
      }, failed);
    },
    close: () => connection.close(),
  };
}

async function measureIngest(
  deployment: Deployment,
  row: IngestRow,
  context: BenchContext,
): Promise<Measurement> {
  let events = 0;
  const measurement = await withServer(deployment, (server) => {
    const workloads = ingestWorkloads(row).map((workload) => {
      const accept: Workload["accept"] = (response) => {
        const accepted = workload.accept(response);
        events += accepted;
        return accepted;
      };
      return { ...workload, accept };
    });
    return measureWorkloads(workloads, deployment, server, context);
  });
  // The last commit is the empty one written at shutdown.
  const commits = await countCommits(join(deployment.folder, "data", "log", "tail.ndjson")) - 1;
  return { ...measurement, eventsPerSync: events / commits };
}

/** Counts the commits in a tail, each made durable by one fdatasync. */
async function countCommits(path: string): Promise<number> {
  const file = await open(path);
  try {
    const buffer = Buffer.alloc(COMMIT_START.length + READ_BYTES);
    let commits = 0;
    let keptBytes = 0;
    while (true) {
      const { bytesRead } = await file.read(buffer, keptBytes, READ_BYTES);
      if (bytesRead === 0) return commits;
      const end = keptBytes + bytesRead;
      let at = 0;
      for (let found: number; (found = buffer.indexOf(COMMIT_START, at)) !== -1 && found < end;) {
        commits += 1;
        at = found + COMMIT_START.length;
      }
      // The rest may be the start of a match that continues in the next read.
      keptBytes = Math.min(COMMIT_START.length - 1, end - at);
      buffer.copyWithin(0, end - keptBytes, end);
      buffer.fill(0, end);
    }
  } finally {
    await file.close();
  }
}

async function measureTailReplay(
  deployment: Deployment,
  context: BenchContext,
): Promise<Measurement> {
  const filling = { events: context.replayEvents, batchEvents: FILL_BATCH_EVENTS, clients: 1 };
  const { eventsInAll } = await withServer(
    deployment,
    (server) => fill(deployment, server, filling),
    ROTATE_NEVER_BYTES,
  );
  const log = { events: eventsInAll, pageEvents: PAGE_EVENTS };
  return await withServer(
    deployment,
    (server) => measureWorkloads([replayWorkload(log)], deployment, server, context),
  );
}

/** Measures this service for the table rows that need a running server. */
import { open } from "node:fs/promises";
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

/** The start of a commit's first line. The other lines are its events. */
const COMMIT_START = '{"commit":{';

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
  const measurement = await withServer(
    deployment,
    (server) => measureWorkloads(ingestWorkloads(row), deployment, server, context),
  );
  const tail = join(deployment.folder, "data", "log", "tail.ndjson");
  return { ...measurement, eventsPerSync: await eventsPerCommit(tail) };
}

/** Returns the events per commit in a tail. Each commit was made durable by one fdatasync. */
async function eventsPerCommit(path: string): Promise<number> {
  const file = await open(path);
  try {
    let [events, commits] = [0, 0];
    for await (const line of file.readLines()) {
      if (line.startsWith(COMMIT_START)) commits += 1;
      else events += 1;
    }
    // The last commit is the empty one written at shutdown.
    return events / (commits - 1);
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

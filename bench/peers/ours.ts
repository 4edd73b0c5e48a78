/** This service, and bare servers on its runtime, for the rows that need a running server. */
import { join } from "node:path";
import { measureDelivery } from "../support/delivery.ts";
import type { Deployment, RuntimeName } from "../support/deployment.ts";
import { runLoad, type Workload } from "../support/load.ts";
import { appendKeyed, withDeployment, withServer } from "../support/with_deployment.ts";
import {
  INGEST_LOADS,
  ingestWorkloads,
  pageWorkload,
  replayWorkload,
} from "../support/workloads.ts";
import { type LoadTimes, type Measurement, measurementOf } from "./measurement.ts";
import { type Served, withFloor } from "./floor.ts";
import { runPeer } from "./peer_process.ts";
import { type BenchContext, DELIVERY, PAGE_EVENTS, type Variant } from "./rows.ts";

/** The bare servers that do the least for a row; by default, `hash-store`. */
const FLOORS: Record<string, string> = { "replay-tail": "page", "deliver": "forward" };

/** Returns the service and the bare server for a row. */
export function ourVariants(row: string, runtime: RuntimeName, context: BenchContext): Variant[] {
  const { folder } = context;
  const floor = FLOORS[row] ?? "hash-store";
  const measureServed = (served: Served) =>
    row === "deliver"
      ? measureServedDelivery(served, context)
      : measureWorkloads(workloadsOf(row), served, context);
  const measureOurs = async (deployment: Deployment) => {
    if (row === "replay-tail") return await measureReplay(deployment, context);
    const measurement = await withServed(deployment, measureServed);
    if (row === "deliver") return measurement;
    return { ...measurement, eventsPerSync: await eventsPerCommit(deployment) };
  };
  const measure = () => withDeployment({ serverRuntime: runtime, parent: folder }, measureOurs);
  const measureFloor = () => withFloor(floor, runtime, folder, measureServed);
  return [
    { row, subject: "ours", variant: runtime, measure },
    { row, subject: "floor", variant: floor, measure: measureFloor },
  ];
}

/** Returns one workload per client. A bare server has only one page. */
function workloadsOf(row: string): Workload[] {
  if (row === "replay-tail") return [pageWorkload(null, PAGE_EVENTS)];
  return ingestWorkloads(INGEST_LOADS[row]!);
}

/** Runs the service on a deployment during `use`. */
export function withServed<T>(
  deployment: Deployment,
  use: (served: Served) => Promise<T>,
): Promise<T> {
  const { socketPath } = deployment;
  return withServer(deployment, ({ pid }) => use({ socketPath, pid }));
}

/** Drives a server that speaks the service's protocol with one client per workload. */
export async function measureWorkloads(
  workloads: Workload[],
  { socketPath, pid: serverPid }: Served,
  { warmupMs, measureMs }: LoadTimes,
): Promise<Measurement> {
  const options = { socketPath, serverPid, workloads, warmupMs, measureMs };
  return measurementOf(await runLoad(options));
}

/** Measures from the first byte of an event to its arrival at the follower. */
async function measureServedDelivery(
  { socketPath, pid: serverPid }: Served,
  { warmupMs, measureMs }: LoadTimes,
): Promise<Measurement> {
  const options = { ...DELIVERY, socketPath, serverPid, warmupMs, measureMs };
  const result = await measureDelivery(options);
  return measurementOf({ ...result, latencies: result.fromSend });
}

/** Returns the events per commit in a tail. Each commit was made durable by one fdatasync. */
async function eventsPerCommit({ folder }: Deployment): Promise<number> {
  const lines = async (option: string) =>
    Number(await runPeer(["grep", option, '^{"commit":{', join(folder, "data/log/tail.ndjson")]));
  // The last commit is the empty one written at shutdown.
  return await lines("-vc") / (await lines("-c") - 1);
}

async function measureReplay(
  deployment: Deployment,
  context: BenchContext,
): Promise<Measurement> {
  const { replayEvents: events } = context;
  await appendKeyed(deployment, { batches: events / PAGE_EVENTS, batchEvents: PAGE_EVENTS });
  const replay = replayWorkload({ events, pageEvents: PAGE_EVENTS });
  return await withServed(deployment, (served) => measureWorkloads([replay], served, context));
}

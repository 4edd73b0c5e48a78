/** This service, and bare servers on its runtime, for the rows that need a running server. */
import { measureDelivery } from "../support/delivery.ts";
import type { RuntimeName } from "../../tools/support/runtimes.ts";
import { runLoad, type Workload } from "../support/load.ts";
import { appendKeyed, type Deployment, withDeployment, withServer } from "../support/deployment.ts";
import { INGEST_LOADS, ingestWorkloads, replayWorkload } from "../support/workloads.ts";
import { type Served, withFloor } from "./floor.ts";
import { type LoadTimes, type Measurement, measurementOf } from "./measurement.ts";
import { type BenchContext, PAGE_EVENTS, type Variant } from "./rows.ts";

/** The bare servers that do the least for a row; by default, `hash-store`. */
const FLOORS: Record<string, string> = { "replay-tail": "page", "deliver": "forward" };

/** Returns the service and the bare server for a row. */
export function ourVariants(row: string, runtime: RuntimeName, context: BenchContext): Variant[] {
  const { folder, replayEvents } = context;
  const floor = FLOORS[row] ?? "hash-store";
  const isReplay = row === "replay-tail";
  const measureServed = (events: number) => (served: Served) => {
    if (row === "deliver") return measureDeliveries(served, context);
    const workloads = isReplay
      ? [replayWorkload({ events, pageEvents: PAGE_EVENTS })]
      : ingestWorkloads(INGEST_LOADS[row]!);
    return measureWorkloads(workloads, served, context);
  };
  const measureOurs = async (deployment: Deployment) => {
    const batches = { batches: replayEvents / PAGE_EVENTS, batchEvents: PAGE_EVENTS };
    if (isReplay) await appendKeyed(deployment, batches);
    return await withServed(deployment, measureServed(replayEvents));
  };
  const measure = () => withDeployment({ serverRuntime: runtime, parent: folder }, measureOurs);
  // A bare server has only one page.
  const measureFloor = () => withFloor(floor, runtime, folder, measureServed(PAGE_EVENTS));
  return [
    { row, subject: "ours", variant: runtime, measure },
    { row, subject: "floor", variant: floor, measure: measureFloor },
  ];
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
async function measureDeliveries(
  { socketPath, pid: serverPid }: Served,
  { warmupMs, measureMs }: LoadTimes,
): Promise<Measurement> {
  const result = await measureDelivery({ socketPath, serverPid, warmupMs, measureMs });
  return measurementOf({ ...result, latencies: result.fromSend });
}

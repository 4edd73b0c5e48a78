/** This service, for the rows that need a running server. */
import { measureDelivery } from "../support/delivery.ts";
import type { RuntimeName } from "../../tools/support/runtimes.ts";
import type { Deployment } from "../support/deployment.ts";
import { runLoad, type Workload } from "../support/load.ts";
import { appendKeyed, withDeployment, withServer } from "../support/with_deployment.ts";
import { INGEST_LOADS, ingestWorkloads, replayWorkload } from "../support/workloads.ts";
import { type LoadTimes, type Measurement, measurementOf } from "./measurement.ts";
import { type BenchContext, DELIVERY, PAGE_EVENTS, type Variant } from "./rows.ts";

/** Returns the service as the only variant of a row. */
export function ourVariants(row: string, runtime: RuntimeName, context: BenchContext): Variant[] {
  const measureOurs = async (deployment: Deployment) => {
    if (row === "replay-tail") return await measureReplay(deployment, context);
    if (row === "deliver") return await measureDeliveries(deployment, context);
    return await measureWorkloads(ingestWorkloads(INGEST_LOADS[row]!), deployment, context);
  };
  const options = { serverRuntime: runtime, parent: context.folder };
  const measure = () => withDeployment(options, measureOurs);
  return [{ row, subject: "ours", variant: runtime, measure }];
}

/** Serves a deployment, and drives it with one client per workload. */
export function measureWorkloads(
  workloads: Workload[],
  deployment: Deployment,
  { warmupMs, measureMs }: LoadTimes,
): Promise<Measurement> {
  const { socketPath } = deployment;
  return withServer(deployment, async ({ pid: serverPid }) => {
    const options = { socketPath, serverPid, workloads, warmupMs, measureMs };
    return measurementOf(await runLoad(options));
  });
}

/** Measures from the first byte of an event to its arrival at the follower. */
function measureDeliveries(
  deployment: Deployment,
  { warmupMs, measureMs }: LoadTimes,
): Promise<Measurement> {
  const { socketPath } = deployment;
  return withServer(deployment, async ({ pid: serverPid }) => {
    const options = { ...DELIVERY, socketPath, serverPid, warmupMs, measureMs };
    const result = await measureDelivery(options);
    return measurementOf({ ...result, latencies: result.fromSend });
  });
}

async function measureReplay(
  deployment: Deployment,
  context: BenchContext,
): Promise<Measurement> {
  const { replayEvents: events } = context;
  await appendKeyed(deployment, { batches: events / PAGE_EVENTS, batchEvents: PAGE_EVENTS });
  const replay = replayWorkload({ events, pageEvents: PAGE_EVENTS });
  return await measureWorkloads([replay], deployment, context);
}

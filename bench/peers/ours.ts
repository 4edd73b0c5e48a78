/** This service, and bare servers on its runtime, for the rows that need a running server. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { executableOf, runtimeArgs, type RuntimeName } from "../../tools/support/runtimes.ts";
import { measureDelivery } from "../support/delivery.ts";
import { runLoad, type Workload } from "../support/load.ts";
import { appendKeyed, type Deployment, withDeployment, withServer } from "../support/deployment.ts";
import { RawClient } from "../support/raw_client.ts";
import { PAGE_EVENTS } from "../support/requests.ts";
import { INGEST_LOADS, ingestWorkloads, replayWorkload } from "../support/workloads.ts";
import { type LoadTimes, type Measurement, measurementOf } from "./measurement.ts";
import { withPeer } from "./peer_process.ts";
import type { BenchContext, Variant } from "./rows.ts";

/** The bare servers that do the least for a row; by default, `hash-store`. */
const FLOORS: Record<string, string> = { "replay-tail": "page", "deliver": "forward" };

const FLOOR_SERVER = fileURLToPath(new URL("./floor_server.ts", import.meta.url));

/** A running server. */
interface Served {
  socketPath: string;
  pid: number;
}

/** Returns the service and the bare server for a row. */
export function ourVariants(row: string, runtime: RuntimeName, context: BenchContext): Variant[] {
  const { folder, replayEvents } = context;
  const floor = FLOORS[row] ?? "hash-store";
  const isReplay = row === "replay-tail";
  const measureServed = (events: number) => (served: Served) => {
    if (row === "deliver") return measureDeliveries(served, context);
    const workloads = isReplay ? [replayWorkload(events)] : ingestWorkloads(INGEST_LOADS[row]!);
    return measureWorkloads(workloads, served, context);
  };
  const measureOurs = async (deployment: Deployment) => {
    if (isReplay) await appendKeyed(deployment, replayEvents / PAGE_EVENTS);
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

/**
 * Runs a bare server (floor_server.ts) during `use`.
 * @param parent directory for the socket and the file, on the disk under test.
 */
async function withFloor<T>(
  work: string,
  runtime: RuntimeName,
  parent: string,
  use: (served: Served) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(parent, "floor-"));
  const socketPath = join(folder, "floor.sock");
  const args = [FLOOR_SERVER, work, socketPath, join(folder, "floor.log")];
  const command = [executableOf(runtime)!, ...runtimeArgs(runtime, ["--allow-all"]), ...args];
  const connect = async () => (await RawClient.connect(socketPath)).close();
  return await withPeer(command, connect, (pid) => use({ socketPath, pid }))
    .finally(() => rm(folder, { recursive: true }));
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

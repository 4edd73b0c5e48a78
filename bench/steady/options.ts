/** The command line for the steady run. */
import { parseArgs } from "node:util";
import { ownRuntime, type RuntimeName } from "../support/deployment.ts";
import { positive, runtimeNamed } from "../support/options.ts";

export interface SteadyOptions {
  serverRuntime: RuntimeName;
  runMs: number;
  /** Time covered by one table row. */
  intervalMs: number;
  /** Events per second. If undefined, the peak rate is measured first, and half of it is used. */
  eventsPerSecond: number | undefined;
  batchEvents: number;
  /** Maximum number of requests in flight. */
  clients: number;
  followers: number;
  jsonPath: string | undefined;
  /** Directory for the deployment; undefined for the system's temporary directory. */
  parent: string | undefined;
}

const MINUTE_MS = 60_000;

/** @throws {Error} if an option is unknown or invalid. */
export function parseSteadyOptions(args: string[]): SteadyOptions {
  const { values } = parseArgs({
    args,
    options: {
      "server-runtime": { type: "string", default: ownRuntime() },
      minutes: { type: "string", default: "30" },
      interval: { type: "string", default: "60" },
      rate: { type: "string" },
      "batch-events": { type: "string", default: "100" },
      clients: { type: "string", default: "16" },
      followers: { type: "string", default: "3" },
      json: { type: "string" },
      dir: { type: "string" },
    },
  });
  const runMs = positive("--minutes", values.minutes) * MINUTE_MS;
  const intervalMs = positive("--interval", values.interval) * 1000;
  if (runMs < 3 * intervalMs) throw new Error("--minutes must be at least three times --interval");
  return {
    serverRuntime: runtimeNamed(values["server-runtime"]),
    runMs,
    intervalMs,
    eventsPerSecond: values.rate === undefined ? undefined : positive("--rate", values.rate),
    batchEvents: positive("--batch-events", values["batch-events"]),
    clients: positive("--clients", values.clients),
    followers: positive("--followers", values.followers),
    jsonPath: values.json,
    parent: values.dir,
  };
}

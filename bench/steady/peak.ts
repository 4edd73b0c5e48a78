/** Measures the peak rate of the server, so that a steady rate can be a share of it. */
import { BulkBatches } from "../scale/history.ts";
import { runLoad, type Workload } from "../support/load.ts";
import { progress } from "../support/options.ts";
import { rounded } from "../support/report.ts";

export interface PeakOptions {
  socketPath: string;
  serverPid: number;
  clients: number;
  batchEvents: number;
}

export interface Peak {
  /** Half of the peak rate. */
  eventsPerSecond: number;
  /** Number of batches used for the measurement, numbered from 0. */
  batches: number;
  /** The last event; null if nothing was appended. */
  lastEventId: string | null;
}

const WARMUP_MS = 3000;
const MEASURE_MS = 10_000;
const STEADY_SHARE = 0.5;

/** Appends unthrottled for a while, unless the rate is given. */
export async function measurePeak(
  { socketPath, serverPid, clients, batchEvents }: PeakOptions,
  { eventsPerSecond }: { eventsPerSecond: number | undefined },
): Promise<Peak> {
  if (eventsPerSecond !== undefined) return { eventsPerSecond, batches: 0, lastEventId: null };
  let batches = 0;
  let lastEventId = "";
  const client = (): Workload => {
    const requests = new BulkBatches(batchEvents);
    return {
      next: () => requests.request(batches++),
      accept({ status, bodyEnd }) {
        const [, id] = /"last_event_id":"([0-9a-f-]+)"/.exec(`${bodyEnd}`) ?? [];
        if (status !== 200 || id === undefined) throw new Error(`status ${status}: ${bodyEnd}`);
        if (id > lastEventId) lastEventId = id;
        return batchEvents;
      },
      bytes: (sent) => sent.length,
    };
  };
  const load = await runLoad({
    socketPath,
    serverPid,
    workloads: Array.from({ length: clients }, client),
    warmupMs: WARMUP_MS,
    measureMs: MEASURE_MS,
    eventsMax: Infinity,
  });
  const peak = load.events / load.seconds;
  progress(
    `peak ${Math.round(peak)} events/s; now ${rounded(100 * STEADY_SHARE, 0)}% of it`,
  );
  return { eventsPerSecond: peak * STEADY_SHARE, batches, lastEventId };
}

/**
 * Measures loads in the shapes that users have, each against its plain form. The two alternate in
 * windows on one server, so that other load on the machine affects both equally. See README.md in
 * this directory.
 */
import { frontier } from "./support/exchange.ts";
import { Followers } from "./support/followers.ts";
import { type LoadResult, runLoad, type Workload } from "./support/load.ts";
import { type BenchOptions, parseBenchOptions, runBench } from "./support/options.ts";
import { peakMemoryBytes } from "./support/process_stats.ts";
import { megabytes, publishRows, rounded, type Row } from "./support/report.ts";
import { withDeployment, withServer } from "./support/deployment.ts";
import {
  conditionalWorkload,
  ingestWorkload,
  requesting,
  type StreamEvents,
  streamWorkload,
  zipfWorkload,
} from "./support/workloads.ts";
import { getRequest, PAGE_EVENTS } from "./support/requests.ts";
import { median } from "../tools/support/median.ts";

/** A measured window. Streams and batch ids that begin with `name` are new. */
interface Window {
  name: string;
  socketPath: string;
  serverPid: number;
  measureMs: number;
  warmupMs: number;
  eventsMax: number;
}

/** Runs a load for a window. @returns the part of it that is compared. */
type Form = (window: Window) => Promise<LoadResult>;

interface Shape {
  plain: Form;
  shaped: Form;
  /** Prepares the log. */
  fill?: Form;
}

type WorkloadOf = (events: StreamEvents) => Workload;

const ONE_KEY = "the-key";
/** Limit on filling a log. */
const FILL_MS = 600_000;

/** Requests, one after another, after which the server has closed what clients have closed. */
const SETTLING_REQUESTS = 100;

/** Clients that each append single events to a stream of their own. */
function clients(count: number, workloadOf: WorkloadOf, source = "bench"): Form {
  return (window) =>
    runLoad({
      ...window,
      workloads: Array.from(
        { length: count },
        (_, client) => workloadOf({ source, stream: `${window.name}-${client}` }),
      ),
    });
}

/** Clients that each append single events with a string of `bytes` bytes as the payload. */
function clientsWith(bytes: number, count: number): Form {
  const payload = "x".repeat(bytes);
  return clients(count, (events) => streamWorkload({ ...events, payload }));
}

/** One client that requests the same page again and again. */
function pages(query: string): Form {
  const request = getRequest(`/v1/events?${query}limit=${PAGE_EVENTS}`);
  const workloads = [requesting(() => request, PAGE_EVENTS)];
  return (window) => runLoad({ ...window, workloads });
}

/** The first form, while the other one also runs. */
function beside(other: Form, measured: Form): Form {
  return async (window) => {
    const both = [measured(window), other({ ...window, name: `${window.name}-other` })] as const;
    return (await Promise.all(both))[0];
  };
}

/** A form with followers, each with a filter of its own that matches nothing. */
function besideIdleFollowers(count: number, measured: Form): Form {
  return async (window) => {
    const followers = await Followers.open({
      socketPath: window.socketPath,
      count,
      after: await frontier(window.socketPath),
      filter: (place) => `&source=bench&stream=quiet-${place}`,
    });
    try {
      return await Promise.race([followers.failed, measured(window)]);
    } finally {
      followers.close();
      // The server must not close them during the next window.
      for (let look = 0; look < SETTLING_REQUESTS; look++) await frontier(window.socketPath);
    }
  };
}

const SHAPES: Record<string, Shape> = {
  "conditional-64": {
    plain: clients(64, streamWorkload),
    shaped: clients(64, conditionalWorkload),
  },
  "beside-conditional-16": {
    plain: clients(32, streamWorkload),
    shaped: beside(clients(16, conditionalWorkload, "other"), clients(32, streamWorkload)),
  },
  "idle-followers-1000": {
    plain: clients(16, streamWorkload),
    shaped: besideIdleFollowers(1000, clients(16, streamWorkload)),
  },
  "idle-followers-4000": {
    plain: clients(16, streamWorkload),
    shaped: besideIdleFollowers(4000, clients(16, streamWorkload)),
  },
  "zipf-70-reads": { plain: clients(16, streamWorkload), shaped: clients(16, zipfWorkload) },
  "events-10-bytes": { plain: clients(16, streamWorkload), shaped: clientsWith(10, 16) },
  "events-10-kb": { plain: clients(16, streamWorkload), shaped: clientsWith(1e4, 16) },
  "events-1-mb": { plain: clients(16, streamWorkload), shaped: clientsWith(1e6, 16) },
  "key-of-1e6": {
    fill: (window) =>
      runLoad({
        ...window,
        measureMs: FILL_MS,
        eventsMax: Math.min(window.eventsMax, 1e6),
        workloads: [ingestWorkload("fill", PAGE_EVENTS, ONE_KEY)],
      }),
    plain: pages(""),
    shaped: pages(`record_key=${ONE_KEY}&`),
  },
};

async function measureRow(name: string, options: BenchOptions): Promise<Row> {
  return await withDeployment(options, (deployment) =>
    withServer(deployment, async ({ pid }) => {
      const { rounds } = options;
      const window = {
        socketPath: deployment.socketPath,
        serverPid: pid,
        warmupMs: options.warmupMs / rounds / 2,
        measureMs: options.measureMs / rounds / 2,
        eventsMax: options.events ?? Infinity,
      };
      const { plain, shaped, fill } = SHAPES[name]!;
      await fill?.({ ...window, name: "fill" });
      await plain({ ...window, name: "warmup", measureMs: options.warmupMs });
      const loads: { plain: LoadResult; shaped: LoadResult }[] = [];
      for (let pair = 0; pair < rounds; pair++) {
        loads.push({
          plain: await plain({ ...window, name: `plain-${pair}` }),
          shaped: await shaped({ ...window, name: `shaped-${pair}` }),
        });
      }
      const middle = (figure: (pair: typeof loads[number]) => number) => median(loads.map(figure));
      return {
        "row": name,
        "plain events/s": Math.round(middle((pair) => perSecond(pair.plain))),
        "shaped events/s": Math.round(middle((pair) => perSecond(pair.shaped))),
        "ratio": rounded(middle((pair) => perSecond(pair.shaped) / perSecond(pair.plain)), 2),
        "plain p99 ms": rounded(middle((pair) => pair.plain.latencies.quantileMs(0.99)), 2),
        "shaped p99 ms": rounded(middle((pair) => pair.shaped.latencies.quantileMs(0.99)), 2),
        "peak MB": megabytes(peakMemoryBytes(pid)),
      };
    }));
}

function perSecond({ events, seconds }: LoadResult): number {
  return events / seconds;
}

await runBench(async () => {
  const options = parseBenchOptions(Object.keys(SHAPES), { rounds: "5" });
  await publishRows("shapes", options, (name) => measureRow(name, options));
});

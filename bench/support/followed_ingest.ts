/**
 * Measures how much followers slow down ingest. Windows without and with followers alternate on one
 * server, so that other load on the machine affects both equally.
 */
import { Followers } from "./followers.ts";
import { type LoadResult, runLoad } from "./load.ts";
import { memoryBytes } from "./process_stats.ts";
import { RawClient } from "./raw_client.ts";
import { pageRequest } from "./requests.ts";
import { ingestWorkload, pagePosition } from "./workloads.ts";

export interface FollowedIngestOptions {
  socketPath: string;
  serverPid: number;
  followers: number;
  /** Whether the followers keep reading. Otherwise, they stop once they have caught up. */
  reading: boolean;
  clients: number;
  batchEvents: number;
  warmupMs: number;
  /** Duration of all windows together. */
  measureMs: number;
  /** Ends a window early. */
  eventsMax: number;
}

export interface FollowedIngestResult {
  /** Events per second without followers. */
  alone: number;
  /** Events per second with followers. */
  followed: number;
  serverCpuSeconds: number | null;
  clientCpuSeconds: number;
  /** Memory of the warmed-up server before the first follower. */
  memoryBeforeBytes: number | null;
}

const PAIRS = 3;

/** @throws {Error} if a batch was not committed, or a follow response ended. */
export async function measureFollowedIngest(
  options: FollowedIngestOptions,
): Promise<FollowedIngestResult> {
  const windows = new Windows(options);
  if (options.warmupMs > 0) await windows.run(options.warmupMs);
  const windowMs = options.measureMs / PAIRS / 2;
  const alone: LoadResult[] = [];
  const followed: LoadResult[] = [];
  let memoryBeforeBytes: number | null = null;
  for (let pair = 0; pair < PAIRS; pair++) {
    alone.push(await windows.run(windowMs));
    if (pair === 0) memoryBeforeBytes = memoryBytes(options.serverPid);
    followed.push(await withFollowers(options, () => windows.run(windowMs)));
  }
  const all = [...alone, ...followed];
  const hasCpu = all.every(({ serverCpuSeconds }) => serverCpuSeconds !== null);
  return {
    alone: eventsPerSecond(alone),
    followed: eventsPerSecond(followed),
    serverCpuSeconds: hasCpu ? sum(all.map((load) => load.serverCpuSeconds!)) : null,
    clientCpuSeconds: sum(all.map((load) => load.clientCpuSeconds)),
    memoryBeforeBytes,
  };
}

/** Runs the same load repeatedly, each time with unique batch ids. */
class Windows {
  readonly #options: FollowedIngestOptions;
  #windows = 0;

  constructor(options: FollowedIngestOptions) {
    this.#options = options;
  }

  run(measureMs: number): Promise<LoadResult> {
    const { socketPath, serverPid, clients, batchEvents, eventsMax } = this.#options;
    const window = this.#windows++;
    return runLoad({
      socketPath,
      serverPid,
      workloads: Array.from(
        { length: clients },
        (_, client) => ingestWorkload(`window-${window}-client-${client}`, batchEvents),
      ),
      warmupMs: 0,
      measureMs,
      eventsMax,
    });
  }
}

async function withFollowers<T>(
  { socketPath, followers: count, reading }: FollowedIngestOptions,
  use: () => Promise<T>,
): Promise<T> {
  const after = await frontier(socketPath);
  const followers = await Followers.open({ socketPath, count, after, receiver: () => () => {} });
  if (!reading) followers.pause();
  try {
    return await Promise.race([followers.failed, use()]);
  } finally {
    followers.close();
  }
}

/** Returns the last event of a log that is not empty. */
export async function frontier(socketPath: string): Promise<string> {
  const client = await RawClient.connect(socketPath);
  try {
    return pagePosition((await client.exchange(pageRequest(null, 1))).bodyEnd).snapshotThrough;
  } finally {
    client.close();
  }
}

function eventsPerSecond(loads: LoadResult[]): number {
  return sum(loads.map(({ events }) => events)) / sum(loads.map(({ seconds }) => seconds));
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

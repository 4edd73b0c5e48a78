/**
 * What one measurement says, whoever was measured, and the clock it is taken with: what the server,
 * the load generator and everything else on the machine used of the processors meanwhile.
 */
import {
  endedChildrenCpuSeconds,
  machineCpuSeconds,
  ownCpuSeconds,
  treeCpuSeconds,
} from "./process_usage.ts";

/** Null: not measured, or not known. */
export interface Measurement {
  eventsPerSecond: number | null;
  p50Ms: number | null;
  p99Ms: number | null;
  /** Processor time of the server for 1,000 events. */
  serverCpuSecondsPer1000: number | null;
  /** Load generator: processor time as a share of one processor. Near 1, it is what limits. */
  clientShare: number | null;
  /** What neither the server nor the load generator used, as a share of one processor. */
  othersShare: number | null;
  eventsPerSync: number | null;
}

export const NOT_MEASURED: Measurement = {
  eventsPerSecond: null,
  p50Ms: null,
  p99Ms: null,
  serverCpuSecondsPer1000: null,
  clientShare: null,
  othersShare: null,
  eventsPerSync: null,
};

/** Processor time and time of day at one moment. */
interface Moment {
  ms: number;
  serverSeconds: number | null;
  clientSeconds: number;
  machineSeconds: number | null;
}

/** Measures what is used from its making on. */
export class UsageClock {
  readonly #serverSeconds: () => number | null;
  readonly #clientSeconds: () => number;
  readonly #start: Moment;

  /** @param serverSeconds, clientSeconds Processor time of each so far. */
  constructor(serverSeconds: () => number | null, clientSeconds: () => number) {
    this.#serverSeconds = serverSeconds;
    this.#clientSeconds = clientSeconds;
    // Reading takes a while, in which nobody is served: it is not to be in the time.
    this.#start = { ...this.#read(), ms: performance.now() };
  }

  /** The measurement of the time until now, in which `events` events were dealt with. */
  stop(events: number): Measurement {
    const end = this.#read();
    const start = this.#start;
    const seconds = (end.ms - start.ms) / 1000;
    const server = difference(start.serverSeconds, end.serverSeconds);
    const client = end.clientSeconds - start.clientSeconds;
    const machine = difference(start.machineSeconds, end.machineSeconds);
    const others = machine === null || server === null ? null : machine - server - client;
    return {
      ...NOT_MEASURED,
      eventsPerSecond: events / seconds,
      serverCpuSecondsPer1000: server === null || events === 0 ? null : server / events * 1000,
      clientShare: client / seconds,
      othersShare: others === null ? null : Math.max(0, others) / seconds,
    };
  }

  #read(): Moment {
    return {
      ms: performance.now(),
      serverSeconds: this.#serverSeconds(),
      clientSeconds: this.#clientSeconds(),
      machineSeconds: machineCpuSeconds(),
    };
  }
}

/**
 * For a server that runs: its process and all below it. The load generator is this process, and
 * with it a tool of the peer's own that has ended when the clock is stopped.
 */
export function serverClock(serverPid: number): UsageClock {
  return new UsageClock(
    () => treeCpuSeconds(serverPid),
    () => ownCpuSeconds() + (endedChildrenCpuSeconds() ?? 0),
  );
}

/** For a command that is run to its end while the clock is on. */
export function commandClock(): UsageClock {
  return new UsageClock(endedChildrenCpuSeconds, ownCpuSeconds);
}

/** For work that this process does itself. */
export function ownClock(): UsageClock {
  return new UsageClock(ownCpuSeconds, () => 0);
}

function difference(start: number | null, end: number | null): number | null {
  return start === null || end === null ? null : end - start;
}

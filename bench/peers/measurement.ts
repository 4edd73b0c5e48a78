/**
 * The results from one measurement, and a clock for the CPU time used by the server, by the load
 * generator and by everything else on the machine.
 */
import {
  endedChildrenCpuSeconds,
  machineCpuSeconds,
  ownCpuSeconds,
  treeCpuSeconds,
} from "./process_usage.ts";

/** A figure is null if it was not measured or is unknown. */
export interface Measurement {
  eventsPerSecond: number | null;
  p50Ms: number | null;
  p99Ms: number | null;
  /** Server CPU seconds per 1,000 events. */
  serverCpuSecondsPer1000: number | null;
  /** The load generator's share of a core. Near 1, it is the bottleneck. */
  clientShare: number | null;
  /** CPU share of everything except the server and the load generator. */
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

/** CPU time and wall-clock time at one moment. */
interface Moment {
  ms: number;
  serverSeconds: number | null;
  clientSeconds: number;
  machineSeconds: number | null;
}

/** Measures usage since its construction. */
export class UsageClock {
  readonly #serverSeconds: () => number | null;
  readonly #clientSeconds: () => number;
  readonly #start: Moment;

  /** @param serverSeconds, clientSeconds CPU time of each so far. */
  constructor(serverSeconds: () => number | null, clientSeconds: () => number) {
    this.#serverSeconds = serverSeconds;
    this.#clientSeconds = clientSeconds;
    // Reading /proc takes a while, with no load running, so that time is excluded.
    this.#start = { ...this.#read(), ms: performance.now() };
  }

  /** Returns the measurement so far, over `events` events. */
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
 * A clock for a running server, with all its descendants. The load generator is this process, plus
 * any peer's own tool that has exited by the time the clock stops.
 */
export function serverClock(serverPid: number): UsageClock {
  return new UsageClock(
    () => treeCpuSeconds(serverPid),
    () => ownCpuSeconds() + (endedChildrenCpuSeconds() ?? 0),
  );
}

/** Starts a clock for a command that runs to completion while the clock runs. */
export function commandClock(): UsageClock {
  return new UsageClock(endedChildrenCpuSeconds, ownCpuSeconds);
}

/** Starts a clock for work in this process. */
export function ownClock(): UsageClock {
  return new UsageClock(ownCpuSeconds, () => 0);
}

function difference(start: number | null, end: number | null): number | null {
  return start === null || end === null ? null : end - start;
}

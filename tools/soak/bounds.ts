/** The bounds of the soak's load, with units and reasons. Those of the service: `vitals.ts`. */

const MIB = 1024 * 1024;

// Load.

export const WRITERS = 6;
export interface ClientCounts {
  writers: number;
  readers: number;
  followers: number;
}
export const SOAK_CLIENTS: ClientCounts = { writers: WRITERS, readers: 2, followers: 4 };
/** Maximum average rate of a writer, low enough for the disk to fill slowly. */
export const WRITER_BYTES_PER_SECOND = 0.75 * MIB;
/** Maximum pause of a writer after a small batch, in milliseconds. */
export const WRITER_PAUSE_MS_MAX = 10;

// Limits for one log. When a log reaches a limit, it is checked from the beginning and removed, and
// the soak continues with a new log. A soak of any length thus uses bounded memory and disk space.

/** Maximum number of events. Each takes about 200 bytes of memory in each of two audits. */
export const ROUND_EVENTS_MAX = 500_000;
/** Maximum total size of payloads. A log takes up to twice that, or three times during a seal. */
export const ROUND_PAYLOAD_BYTES_MAX = 512 * MIB;

/** Size at which the service seals its tail, small enough for faults to interrupt seals. */
export const ROTATE_BYTES = 4 * MIB;

/** An observer submits its observation after this many events. */
export const OBSERVED_EVENTS_MAX = 10_000;

// Timeouts and delays.

/** Time limit for a startup or a response, far above any delay from a slow disk or a freeze. */
export const ANSWER_TIMEOUT_MS = 300_000;
/** Maximum delay before a client retries. */
export const RETRY_MS_MAX = 250;
/** Duration of the load between two faults. */
export const LOAD_MS_MIN = 300;
export const LOAD_MS_MAX = 4_000;

/** Interval between samples of the service's resources (`vitals.ts`). */
export const SAMPLE_MS = 1000;

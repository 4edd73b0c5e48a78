/** All limits of the soak, with units and reasons. */
import { ADMITTED_BODY_BYTES_MAX, LIVE_PAGES_BYTES_MAX } from "../../src/limits.ts";
import { PREPARED_BYTES_MAX } from "../../src/service/prepared_room.ts";
import { RECENT_COMMITS_BYTES_MAX } from "../../src/log/log.ts";
import { ROW_GROUP_CACHE_BYTES_MAX } from "../../src/log/segment/segment_caches.ts";
import { BLOOM_FILTER_CACHE_BYTES_MAX } from "../../src/log/segment/segment_caches.ts";
import { CLIENT_SOCKETS_MAX } from "../../src/client/unix_fetch.ts";

const MIB = 1024 * 1024;

// Load.

export const WRITERS = 6;
export const READERS = 2;
export const FOLLOWERS = 4;
/**
 * Average rate of a writer, limited so that the disk fills slowly; a slow disk is slower anyway.
 */
export const WRITER_BYTES_PER_SECOND = 0.75 * MIB;
/** Longest pause of a writer after a small batch, in milliseconds. */
export const WRITER_PAUSE_MS_MAX = 10;

// Limits of one log. When one is reached, the log is checked as a whole and removed, and the soak
// continues with a new one, so memory and disk stay bounded for any duration.

/** A batch takes about 500 bytes of memory. */
export const ROUND_BATCHES_MAX = 200_000;
/** An event takes 26 bytes of memory. */
export const ROUND_EVENTS_MAX = 2_000_000;
/** Canonical payloads. The log uses up to twice as much, and three times during a seal. */
export const ROUND_PAYLOAD_BYTES_MAX = 512 * MIB;

/** Size at which the service seals its tail, small enough that disturbances hit seals. */
export const ROTATE_BYTES = 4 * MIB;

// Memory between two audits.

/** An observer submits its events in groups of this size. */
export const OBSERVED_EVENTS_MAX = 10_000;
/** Unchecked observations; above this, observers wait for the next check. */
export const OBSERVATIONS_MAX = 20_000;

// Waits.

/** Timeout for startup and responses, far above slow disks and freezes. */
export const ANSWER_TIMEOUT_MS = 300_000;
/** Longest pause before a client retries once the service is up. */
export const RETRY_MS_MAX = 250;
/** Load between two disturbances. */
export const LOAD_MS_MIN = 300;
export const LOAD_MS_MAX = 4_000;

// Resources of the service.

/** Sampling interval. */
export const SAMPLE_MS = 500;
/** Number of samples kept; beyond that, every second one is dropped. */
export const SAMPLES_MAX = 20_000;
/** The runtime with the program loaded, and one second of garbage. */
const RUNTIME_BYTES = 256 * MIB;
/** All caches of the service, full. */
const CACHES_BYTES = ROW_GROUP_CACHE_BYTES_MAX + BLOOM_FILTER_CACHE_BYTES_MAX +
  RECENT_COMMITS_BYTES_MAX + LIVE_PAGES_BYTES_MAX + PREPARED_BYTES_MAX;
/** Batch identities of a full round: a digest, two ids, a name. */
const STATE_BYTES = 512 * ROUND_BATCHES_MAX;
/** From src/limits.ts: a body costs up to five times its size until it is collected. */
const BODIES_BYTES = 5 * ADMITTED_BODY_BYTES_MAX;
/** The sealing thread: a runtime, and the largest row group in several representations. */
const SEALING_BYTES = 256 * MIB;
/** A sample above this exceeds the service's own limits. */
export const MEMORY_BYTES_MAX = RUNTIME_BYTES + CACHES_BYTES + STATE_BYTES + BODIES_BYTES +
  SEALING_BYTES;
/** Allowed growth of the median from the first quarter to the last, while caches fill. */
export const MEMORY_GROWTH_BYTES_MAX = CACHES_BYTES + STATE_BYTES + SEALING_BYTES;
/** The service's own descriptors, and a connection for each socket that the clients may open. */
export const DESCRIPTORS_MAX = 64 + 2 * CLIENT_SOCKETS_MAX;
/** Allowed growth of the median descriptor count. */
export const DESCRIPTORS_GROWTH_MAX = 32;

/** Every bound of the soak, with its unit and why it is what it is. */
import { ADMITTED_BODY_BYTES_MAX, LIVE_PAGES_BYTES_MAX } from "../../src/limits.ts";
import { PREPARED_BYTES_MAX } from "../../src/service/prepared_room.ts";
import { RECENT_COMMITS_BYTES_MAX } from "../../src/log/log.ts";
import { ROW_GROUP_CACHE_BYTES_MAX } from "../../src/log/segment/segment_caches.ts";
import { BLOOM_FILTER_CACHE_BYTES_MAX } from "../../src/log/segment/segment_caches.ts";
import { CLIENT_SOCKETS_MAX } from "../../src/client/unix_fetch.ts";

const MIB = 1024 * 1024;

// The load.

export const WRITERS = 6;
export const READERS = 2;
export const FOLLOWERS = 4;
/**
 * What a writer submits in a second on average, so that the disk fills slowly; a slow disk sets its
 * own pace below that.
 */
export const WRITER_BYTES_PER_SECOND = 0.75 * MIB;
/** The longest pause of a writer after a small batch, in milliseconds. */
export const WRITER_PAUSE_MS_MAX = 10;

// One log. At any of these it is checked as a whole and removed, and the soak goes on with a new
// one: so memory and disk stay bounded however long it takes.

/** What is remembered of a batch takes about 500 bytes. */
export const ROUND_BATCHES_MAX = 200_000;
/** What is remembered of an event takes 26 bytes. */
export const ROUND_EVENTS_MAX = 2_000_000;
/** Canonical payloads. The log takes up to twice as much, and during a seal three times. */
export const ROUND_PAYLOAD_BYTES_MAX = 512 * MIB;

/** Size at which the service seals its tail: so that disturbances strike in the midst of it. */
export const ROTATE_BYTES = 4 * MIB;

// What is remembered until the next look at the log.

/** An observer reports its events after this many and starts over. */
export const OBSERVED_EVENTS_MAX = 10_000;
/** Observations that wait to be checked; whoever has more waits for the next check. */
export const OBSERVATIONS_MAX = 20_000;

// Waits.

/** A start, and any answer: whoever takes longer hangs. Slow disks and freezes are far below. */
export const ANSWER_TIMEOUT_MS = 300_000;
/** The longest pause before a client tries again once the service is up. */
export const RETRY_MS_MAX = 250;
/** Load between two disturbances. */
export const LOAD_MS_MIN = 300;
export const LOAD_MS_MAX = 4_000;

// The service's use of the machine.

/** Between two looks at it. */
export const SAMPLE_MS = 500;
/** Looks that are kept; of more, every second one is dropped. */
export const SAMPLES_MAX = 20_000;
/** A runtime with the program in it and the garbage of a second. */
const RUNTIME_BYTES = 256 * MIB;
/** All caches of the service, full. */
const CACHES_BYTES = ROW_GROUP_CACHE_BYTES_MAX + BLOOM_FILTER_CACHE_BYTES_MAX +
  RECENT_COMMITS_BYTES_MAX + LIVE_PAGES_BYTES_MAX + PREPARED_BYTES_MAX;
/** Identities of the batches of a full round: a digest, two ids, a name. */
const STATE_BYTES = 512 * ROUND_BATCHES_MAX;
/** As src/limits.ts has it: a body costs up to five times its size until it is collected. */
const BODIES_BYTES = 5 * ADMITTED_BODY_BYTES_MAX;
/** The thread that seals: a runtime of its own, a row group of the largest size in its forms. */
const SEALING_BYTES = 256 * MIB;
/** No look may find more: the service would hold more than its limits say. */
export const MEMORY_BYTES_MAX = RUNTIME_BYTES + CACHES_BYTES + STATE_BYTES + BODIES_BYTES +
  SEALING_BYTES;
/** What the median may grow by from the first quarter to the last: caches and state that fill. */
export const MEMORY_GROWTH_BYTES_MAX = CACHES_BYTES + STATE_BYTES + SEALING_BYTES;
/** The service's own, and a connection for each socket that the clients may hold. */
export const DESCRIPTORS_MAX = 64 + 2 * CLIENT_SOCKETS_MAX;
/** What the median of descriptors may grow by. */
export const DESCRIPTORS_GROWTH_MAX = 32;

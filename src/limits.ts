/**
 * Every bound of the service, each with its unit and why it is what it is. The specification's
 * limits come first; the rest keep memory, waits and files bounded. Relations are asserted at load.
 */
import { assert } from "./assert.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

// Given by the specification.

export const BATCH_EVENTS_MAX = 10_000;
export const INGEST_BODY_BYTES_MAX = 32 * MIB;
export const CONTROL_BODY_BYTES_MAX = 1 * MIB;
/** `source`, `stream` and `kind`, in UTF-8. */
export const NAME_BYTES_MAX = 128;
/** In UTF-8. */
export const RECORD_KEY_BYTES_MAX = 1024;
/** In UTF-8. */
export const BATCH_ID_BYTES_MAX = 256;
/** Containers on one root-to-leaf path of a payload; a scalar has depth 0. */
export const PAYLOAD_DEPTH_MAX = 128;
/**
 * Containers of a whole body on one path. Outside its payloads no valid body has more than three.
 */
export const JSON_DEPTH_MAX = 256;
/** Finite replay ends a page at this many bytes of events, but never before one event. */
export const REPLAY_RESPONSE_BYTES_MAX = 16 * MIB;

/**
 * Memory that has become too small is made this many times as large, so that it is seldom made
 * anew. Twice would leave much of a large one unused.
 */
export const MEMORY_GROWTH_FACTOR = 1.25;

// Admission: what one process holds for its clients at a time.

/**
 * Bytes of request bodies held at once; the rest stay unread, then get 429. Room for one of the
 * largest, and for ten batches of 10,000 usual events beside it.
 */
export const ADMITTED_BODY_BYTES_MAX = 72 * MIB;
/** A body without room waits this long before it gets 429. */
export const ADMISSION_WAIT_MS = 4000;
/** Requests waiting for room; more get 429 at once. A waiting request costs only its socket. */
export const ADMISSION_WAITERS_MAX = 1024;
/** What a 429 tells the client to wait. */
export const RETRY_AFTER_SECONDS = 1;
/** Smaller memory costs little to have anew. */
export const POOLED_BYTES_MIN = 128 * KIB;
/** A body of which nothing arrives for this long is given up. */
export const BODY_STALL_TIMEOUT_MS = 30_000;

// HTTP.

/**
 * Request line and headers; also what a chunked body may have besides its content, and how far a
 * connection is read ahead of the request under way.
 */
export const HEADER_BYTES_MAX = 64 * KIB;
/** How long the header section of a request may take to arrive. */
export const HEADERS_TIMEOUT_MS = 60_000;
/**
 * A response can come before the request's body has. What still comes is read and dropped, so that
 * the client gets to read the response, but no more than this: twice the largest body.
 */
export const DRAIN_BYTES_MAX = 64 * MIB;
/** And no longer than this. */
export const DRAIN_TIMEOUT_MS = 10_000;

// The log.

/**
 * A commit takes no batch that brings its events over this size, so that the batch at the head of
 * the queue waits for one bounded write. A single larger batch is a commit of its own.
 */
export const COMMIT_BYTES_SOFT_MAX = 8 * MIB;
/** Events of a commit that are filled in before others get a turn: a few milliseconds of work. */
export const COMMIT_SLICE_EVENTS = 2000;
/** Batches of one commit: bounds its header line (about 2.3 KiB a batch at the most). */
export const COMMIT_BATCHES_MAX = 1024;
/** Longest header line a reader accepts: COMMIT_BATCHES_MAX of the longest batch entries fit. */
export const COMMIT_HEADER_BYTES_MAX = 4 * MIB;
/**
 * Longest body of a commit a reader accepts. A 32 MiB request can grow: `1e20,` (5 bytes) is stored
 * as `100000000000000000000,` (22 bytes), and each event gains about 2 KiB of names and hashes.
 */
export const COMMIT_BODY_BYTES_MAX = 256 * MIB;
/**
 * Longest manifest that is written or read: about 600 bytes a segment, so a hundred thousand
 * segments, 26 billion events in full ones.
 */
export const MANIFEST_BYTES_MAX = 64 * MIB;
/**
 * A tail of this size is rotated and sealed while the service goes on: at the ordinary size of
 * events a segment of 70,000, two seconds of work. A start reads two such files, and more only
 * where ingest is quicker than a thread that seals half of the time.
 */
export const TAIL_ROTATE_BYTES = 64 * MIB;
/**
 * What a thread that prepares batches, seals or verifies may use for values that are soon of no
 * use. More makes it no faster, and a runtime left to itself gives each 100 MiB more.
 */
export const THREAD_YOUNG_HEAP_MIB_MAX = 12;
/** Rows of a page of streams when the client does not say. */
export const STREAMS_LIMIT_DEFAULT = 100;
export const STREAMS_LIMIT_MAX = 1000;

// Followers.

/** More followers get 429: each costs a socket and up to FOLLOW_RECORD_BYTES_MAX. */
export const FOLLOWERS_MAX = 4096;
/**
 * Events of one follow record end here, but never before one event: what a slow follower can hold.
 */
export const FOLLOW_RECORD_BYTES_MAX = 256 * KIB;
/** Live records kept for other followers to share; a larger one is shared only while it is read. */
export const LIVE_PAGES_BYTES_MAX = 4 * MIB;
/** A follower that takes no bytes for this long while data waits is ended. */
export const FOLLOW_STALL_TIMEOUT_MS = 60_000;

/** One read of a commit file; also the size of the pieces a replay response is written in. */
export const READ_CHUNK_BYTES = 256 * KIB;

// Segments. Their bounds are part of the format: a reader refuses what exceeds them.

/** A row group is what a reader decodes at once: a page of replay at the default limit. */
export const ROW_GROUP_EVENTS_MAX = 1024;
/** A segment takes no more commits once it has so many events. Bounds its footer. */
export const SEGMENT_EVENTS_SOFT_MAX = 256 * KIB;
/**
 * Nor once its lines have this size. A sealing that is cut off does one segment again at the most:
 * those in the manifest stay.
 */
export const SEGMENT_BYTES_SOFT_MAX = 512 * MIB;
/**
 * Longest footer a reader accepts: the places of all row groups, of which a segment has few hundred
 * at the most.
 */
export const SEGMENT_FOOTER_BYTES_MAX = 16 * MIB;
/** Longest filter over the keys of a segment that a reader accepts. */
export const KEY_FILTER_BYTES_MAX = 4 * MIB;
/** A stored event has no fewer, for its member names, id, time and hashes. */
export const EVENT_BYTES_MIN = 330;

// Verification.

// The client.

export const CLIENT_BACKOFF_MS_MAX = 5_000;
/** Longest line of a follow response: a record of one event, as large as a request can make it. */
export const CLIENT_LINE_BYTES_MAX = 160 * MIB;

/** Bytes a stored event line can add to what its request carried. */
const EVENT_OVERHEAD_BYTES_MAX = 8 * KIB;

// The command line.

/** A longer token would not fit the header section of a request. */
export const TOKEN_BYTES_MAX = 4096;
/** `sockaddr_un.sun_path` without its terminating NUL, on Linux. */
export const SOCKET_PATH_BYTES_MAX_LINUX = 107;
/** The same on macOS and the BSDs. */
export const SOCKET_PATH_BYTES_MAX_BSD = 103;
/** `deno task` hands on a Ctrl-C that its child got from the terminal a moment before. */
export const SIGNAL_ECHO_MS = 100;
/**
 * How long a shutdown waits for clients that send or take their bytes slowly. The writer's own work
 * is always waited for.
 */
export const SHUTDOWN_GRACE_MS = 5_000;

assert(
  COMMIT_BODY_BYTES_MAX >=
    INGEST_BODY_BYTES_MAX * 22 / 5 + BATCH_EVENTS_MAX * EVENT_OVERHEAD_BYTES_MAX,
  "the largest batch fits one commit",
);
assert(
  CLIENT_LINE_BYTES_MAX >=
    Math.max(INGEST_BODY_BYTES_MAX * 22 / 5, FOLLOW_RECORD_BYTES_MAX) + EVENT_OVERHEAD_BYTES_MAX,
  "a follow record fits the client's line",
);
assert(
  ADMITTED_BODY_BYTES_MAX >= 2 * INGEST_BODY_BYTES_MAX,
  "bodies share room beside the room that lets the largest one finish",
);
assert(DRAIN_BYTES_MAX > INGEST_BODY_BYTES_MAX, "a refused body is drained to its end");
assert(JSON_DEPTH_MAX > PAYLOAD_DEPTH_MAX + 3, "a payload that is too deep is parsed and named");
assert(LIVE_PAGES_BYTES_MAX >= 2 * FOLLOW_RECORD_BYTES_MAX, "followers share records of any size");
/** With its last commit. */
const SEGMENT_EVENTS_MAX = SEGMENT_EVENTS_SOFT_MAX +
  Math.max(BATCH_EVENTS_MAX, COMMIT_BYTES_SOFT_MAX / EVENT_BYTES_MIN);
assert(
  KEY_FILTER_BYTES_MAX >= SEGMENT_EVENTS_MAX * 3 * 3,
  "three keys of three bytes for each event fit the filter of a segment",
);

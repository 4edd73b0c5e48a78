/**
 * The bounds that an operator or the contract asks about, each with its unit and its reason. The
 * limits of the specification come first; the rest bound memory, waits and files. Relations
 * between bounds are asserted at load. A bound of one module alone lives in that module.
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
/** Containers on one path of a whole body. Around a payload a valid body has three. */
export const JSON_DEPTH_MAX = 256;
/** A page of finite replay ends at this many bytes of events, but holds at least one event. */
export const REPLAY_RESPONSE_BYTES_MAX = 16 * MIB;

/** Growth of a buffer that is too small. Doubling would leave much of a large one unused. */
export const MEMORY_GROWTH_FACTOR = 1.25;

// Admission: what one process holds for its clients.

/**
 * Request bodies in memory; others stay unread, then get 429. It fits one body of the largest size
 * beside ten batches of 10,000 ordinary events.
 */
export const ADMITTED_BODY_BYTES_MAX = 72 * MIB;
/** A body that does not fit waits this long before it gets 429. */
export const ADMISSION_WAIT_MS = 4000;
/** Requests that wait for room; more get 429 at once. A waiting request costs only its socket. */
export const ADMISSION_WAITERS_MAX = 1024;
/** A request body that makes no progress for this long is abandoned. */
export const BODY_STALL_TIMEOUT_MS = 30_000;

// HTTP.

/**
 * Request line and headers. Also bounds the framing of a chunked body, and how far a connection is
 * read ahead of the current request.
 */
export const HEADER_BYTES_MAX = 64 * KIB;
/** Time for the header section of a request to arrive. */
export const HEADERS_TIMEOUT_MS = 60_000;
/**
 * When a response precedes the request's body, the rest of the body is read and dropped so that the
 * client can read the response. Twice the largest body.
 */
export const DRAIN_BYTES_MAX = 64 * MIB;
/** Longest time spent on dropping a body. */
export const DRAIN_TIMEOUT_MS = 10_000;

// The log.

/**
 * A group commit ends before the batch that would exceed this size, so that the head of the queue
 * waits for one bounded write. A larger batch is a commit of its own.
 */
export const COMMIT_BYTES_SOFT_MAX = 8 * MIB;
/** Batches in a commit. Bounds its header line: a batch takes at most 2.3 KiB of it. */
export const COMMIT_BATCHES_MAX = 1024;
/** Longest header line a reader accepts. Fits COMMIT_BATCHES_MAX batch entries of any size. */
export const COMMIT_HEADER_BYTES_MAX = 4 * MIB;
/**
 * Longest body of a commit a reader accepts. A 32 MiB request grows when it is stored: `1e20,`
 * (5 bytes) becomes `100000000000000000000,` (22 bytes), and an event gains about 2 KiB of names
 * and hashes.
 */
export const COMMIT_BODY_BYTES_MAX = 256 * MIB;
/**
 * Longest manifest that is written or read. A segment takes about 600 bytes, so it lists a hundred
 * thousand segments, or 26 billion events in full ones.
 */
export const MANIFEST_BYTES_MAX = 64 * MIB;
/**
 * A tail of this size is rotated and sealed in the background: 70,000 ordinary events, two seconds
 * of work. A start reads the tail and one pending generation; more only when ingest outpaces
 * throttled sealing.
 */
export const TAIL_ROTATE_BYTES = 64 * MIB;
/** Default of `limit` in `GET /v1/streams`. */
export const STREAMS_LIMIT_DEFAULT = 100;
export const STREAMS_LIMIT_MAX = 1000;

// Followers.

/** More followers get 429: each costs a socket and up to FOLLOW_RECORD_BYTES_MAX. */
export const FOLLOWERS_MAX = 4096;
/** Events of a follow record, but at least one: the memory that a slow follower can hold. */
export const FOLLOW_RECORD_BYTES_MAX = 256 * KIB;
/** Live records cached for other followers; a larger one is shared only while it is being read. */
export const LIVE_PAGES_BYTES_MAX = 4 * MIB;
/** A follower that accepts no bytes for this long while data waits is ended. */
export const FOLLOW_STALL_TIMEOUT_MS = 60_000;

/** Size of a read of a commit file, and of a chunk of a streamed replay. */
export const READ_CHUNK_BYTES = 256 * KIB;

// Segments. Their bounds are part of the format: a reader refuses what exceeds them.

/** A row group is what a reader decodes at once: a page of replay at the default limit. */
export const ROW_GROUP_EVENTS_MAX = 1024;
/** A segment takes no further commit at this many events. Bounds its footer. */
export const SEGMENT_EVENTS_SOFT_MAX = 256 * KIB;
/** Nor at this size of its lines. An interrupted sealing repeats at most one segment. */
export const SEGMENT_BYTES_SOFT_MAX = 512 * MIB;
/** Longest footer a reader accepts: the places of at most a few hundred row groups. */
export const SEGMENT_FOOTER_BYTES_MAX = 16 * MIB;
/** Longest filter over the keys of a segment that a reader accepts. */
export const KEY_FILTER_BYTES_MAX = 4 * MIB;
/** Shortest stored event: its member names, id, time and hashes. */
export const EVENT_BYTES_MIN = 330;

// The client.

/** Longest line of a follow response: a record of one event of the largest size. */
export const CLIENT_LINE_BYTES_MAX = 160 * MIB;

/** Bytes that a stored event line adds to its share of the request, at most. */
const EVENT_OVERHEAD_BYTES_MAX = 8 * KIB;

// The command line.

/** A longer token would not fit the header section of a request. */
export const TOKEN_BYTES_MAX = 4096;
/** How long a shutdown waits for slow clients. It always waits for the writer. */
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

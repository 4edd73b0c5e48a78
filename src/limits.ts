/**
 * Limits that operators or several modules depend on, with units and reasons. Relations between
 * them are asserted at load. A limit used by a single module is defined in that module.
 */
import { assert } from "./assert.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

export const BATCH_EVENTS_MAX = 10_000;
export const INGEST_BODY_BYTES_MAX = 32 * MIB;
/** Largest ratio of a stored event to its part of a body: `1e20,` is stored in 22 bytes. */
export const STORED_BYTES_PER_BODY_BYTE: number = 22 / 5;
export const CONTROL_BODY_BYTES_MAX = 1 * MIB;
/** Maximum size of `source`, `stream` and `kind` in UTF-8. */
export const NAME_BYTES_MAX = 128;
export const RECORD_KEY_BYTES_MAX = 1024;
export const BATCH_ID_BYTES_MAX = 256;
/** Maximum nesting depth of a payload; a scalar has depth 0. */
export const PAYLOAD_DEPTH_MAX = 128;
/** Maximum nesting depth of a body. In a valid body, three containers enclose a payload. */
export const JSON_DEPTH_MAX = 256;
/** Maximum total size of the events in a replay page. A larger event is returned alone. */
export const REPLAY_RESPONSE_BYTES_MAX = 16 * MIB;

// Admission.

/** Memory for request bodies: one maximum-size body plus ten batches of 10,000 typical events. */
export const ADMITTED_BODY_BYTES_MAX = 72 * MIB;
/** How long a request waits for memory for its body before it gets a 429. */
export const ADMISSION_WAIT_MS = 4000;
/** Maximum requests waiting for memory; others get a 429. A waiting request uses only a socket. */
export const ADMISSION_WAITERS_MAX = 1024;
/** A request body that makes no progress for this long is abandoned. */
export const BODY_STALL_TIMEOUT_MS = 30_000;
/** A body is also abandoned if it takes longer than this, plus the time of the slowest rate. */
export const BODY_TIMEOUT_MS = 60_000;
/** Slowest rate at which a body must arrive. */
export const BODY_BYTES_PER_SECOND_MIN: number = 16 * KIB;

// Responses in flight.

/** What a read reserves until its response has been written: a block of the log. */
export const RESPONSE_RESERVED_BYTES: number = 256 * KIB;
/** Memory for finite responses in flight, without larger blocks, and as much for follow records. */
export const RESPONSE_BYTES_MAX: number = 96 * MIB;
/** Memory for larger blocks, which hold one event each. One may exceed it alone. */
export const LARGE_BLOCK_BYTES_MAX: number = 64 * MIB;

// HTTP.

/** Limit on a request head, a chunked body's framing and a connection's read-ahead. */
export const HEADER_BYTES_MAX = 64 * KIB;
/** Maximum header lines in a request. Parsing 16,000 would delay others by milliseconds. */
export const HEADER_LINES_MAX = 256;
/** A connection is closed after this many 401 responses in a row. */
export const UNAUTHORIZED_MAX = 100;
/** Timeout for a request head to arrive. */
export const HEADERS_TIMEOUT_MS = 60_000;
/** Maximum open connections: all followers, and as many other clients. Each takes 32 KiB. */
export const CONNECTIONS_MAX = 8192;
/** A connection without a request is closed after this time. */
export const IDLE_TIMEOUT_MS = 300_000;
/** A client that accepts nothing of a response for this long is disconnected. */
export const WRITE_STALL_TIMEOUT_MS = 60_000;
/** Maximum body bytes discarded after an early response. This is twice the largest body. */
export const DRAIN_BYTES_MAX = 64 * MIB;
/** Timeout for discarding a body. */
export const DRAIN_TIMEOUT_MS = 10_000;

// The log.

/** Soft limit on the size of a group commit; bounds how long its first batch waits. */
export const COMMIT_BYTES_SOFT_MAX = 8 * MIB;
/** Maximum batches per commit. Bounds the header line, since a batch entry takes up to 2.3 KiB. */
export const COMMIT_BATCHES_MAX = 1024;
/** Longest header line that a reader accepts. Holds COMMIT_BATCHES_MAX entries of any size. */
export const COMMIT_HEADER_BYTES_MAX = 4 * MIB;
/** Longest commit body that a reader accepts. */
export const COMMIT_BODY_BYTES_MAX = 256 * MIB;
/** Largest manifest: about 600 bytes for each of 100,000 segments, which hold 26 billion events. */
export const MANIFEST_BYTES_MAX = 64 * MIB;
/** A tail is sealed in the background at this size: 60,000 to 90,000 typical events, in 2 s. */
export const TAIL_ROTATE_BYTES = 64 * MIB;
/** Maximum size of the tail and the pending files. New batches wait from BACKLOG_WAIT_BYTES on. */
const BACKLOG_BYTES_MAX = 1024 * MIB;
/** Maximum memory for the indexes of the tail and the pending files. */
const BACKLOG_INDEX_BYTES_MAX = 256 * MIB;
/** How many bytes of a file a byte of its index counts for, so that one limit bounds both. */
export const BACKLOG_BYTES_PER_INDEX_BYTE: number = BACKLOG_BYTES_MAX / BACKLOG_INDEX_BYTES_MAX;
/** New batches wait for sealing while this much is unsealed. Those in memory still fit. */
export const BACKLOG_WAIT_BYTES: number = BACKLOG_BYTES_MAX - COMMIT_BODY_BYTES_MAX;
/** How long a new batch waits for sealing before it gets a 429. */
export const BACKLOG_WAIT_MS = 5000;
/** Maximum size of the bodies that wait for sealing; further ones get a 429 at once. */
export const BACKLOG_WAITING_BYTES_MAX = 16 * MIB;
/** Space reserved in the tail. Overwriting it spares fdatasync(2) from writing metadata. */
export const RESERVED_BYTES = 1 * MIB;
/** A smaller tail reserves nothing. */
export const RESERVING_TAIL_BYTES_MIN = 256 * KIB;
/** Default for `limit` in `GET /v1/streams`. */
export const STREAMS_LIMIT_DEFAULT = 100;
export const STREAMS_LIMIT_MAX = 1000;

// Followers.

/** Maximum followers; others get a 429. Each uses a socket and a record. */
export const FOLLOWERS_MAX = 4096;
/** Maximum total size of a follow record's events; bounds the memory for a slow follower. */
export const FOLLOW_RECORD_BYTES_MAX = 256 * KIB;
/** Cache size for the live records that followers share. A larger record is shared but not kept. */
export const LIVE_PAGES_BYTES_MAX = 4 * MIB;
/** A follower whose position has moved gets it, without events, this long after its last record. */
export const FOLLOW_POSITION_INTERVAL_MS = 5_000;

/** Read size for commit files and chunk size of a streamed replay. */
export const READ_CHUNK_BYTES = 256 * KIB;

// Segments. These limits are part of the format, and readers enforce them.

/** A row group is decoded as a unit: larger ones slow key lookups down, smaller ones replays. */
export const ROW_GROUP_EVENTS_MAX = 1024;
/** Largest row group that a reader accepts; earlier versions wrote such ones. */
export const ROW_GROUP_ROWS_MAX = 2048;
/** A segment is complete once it has this many events. Bounds the size of its footer. */
export const SEGMENT_EVENTS_SOFT_MAX = 256 * KIB;
/** A segment is also complete once its lines reach this total size. */
export const SEGMENT_BYTES_SOFT_MAX = 512 * MIB;
/** Largest footer that a reader accepts. Holds the offsets of a few hundred row groups. */
export const SEGMENT_FOOTER_BYTES_MAX = 4 * MIB;
/** Size of the smallest stored event: member names, id, time and hashes. */
export const EVENT_BYTES_MIN = 330;

/** Longest replay page or line of a follow response: one event of maximum size. */
export const CLIENT_LINE_BYTES_MAX = 160 * MIB;
/** Longest other response. 10,000 faults of a batch take 2 MiB, 1,000 streams 0.5 MiB. */
export const CLIENT_DOCUMENT_BYTES_MAX = 16 * MIB;

/** Maximum number of bytes by which a stored event exceeds its part of the request. */
const EVENT_OVERHEAD_BYTES_MAX = 8 * KIB;

/** Maximum token size, small enough for a request head. */
export const TOKEN_BYTES_MAX = 4096;
/** How long a shutdown waits for slow clients. It always waits for the writer. */
export const SHUTDOWN_GRACE_MS = 5_000;

assert(
  COMMIT_BODY_BYTES_MAX >=
    INGEST_BODY_BYTES_MAX * STORED_BYTES_PER_BODY_BYTE +
      BATCH_EVENTS_MAX * EVENT_OVERHEAD_BYTES_MAX,
  "the largest batch must fit in one commit",
);
assert(
  CLIENT_LINE_BYTES_MAX >=
    Math.max(INGEST_BODY_BYTES_MAX * STORED_BYTES_PER_BODY_BYTE, REPLAY_RESPONSE_BYTES_MAX) +
      EVENT_OVERHEAD_BYTES_MAX,
  "a page must fit in a line that the client accepts",
);
assert(
  ADMITTED_BODY_BYTES_MAX >= 2 * INGEST_BODY_BYTES_MAX,
  "a body of maximum size must leave memory for others",
);
assert(
  BACKLOG_WAITING_BYTES_MAX + INGEST_BODY_BYTES_MAX < ADMITTED_BODY_BYTES_MAX,
  "bodies that wait for sealing must leave memory for duplicates",
);
assert(CONNECTIONS_MAX >= 2 * FOLLOWERS_MAX, "followers must leave connections for others");
assert(DRAIN_BYTES_MAX > INGEST_BODY_BYTES_MAX, "a rejected body must be drained to its end");
assert(JSON_DEPTH_MAX > PAYLOAD_DEPTH_MAX + 3, "a payload nested too deeply must be reported");
assert(LIVE_PAGES_BYTES_MAX >= 2 * FOLLOW_RECORD_BYTES_MAX, "two records of any size must fit");

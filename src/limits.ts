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
/** Containers of a value that `canonicalize()` takes; bounds its recursion. */
export const CANONICAL_DEPTH_MAX = 1024;
/** Member names that canonicalization keeps in quoted form; all are dropped when there are more. */
export const NAME_CACHE_ENTRIES_MAX = 1024;
/** Longest name that is kept, in UTF-16 code units. */
export const NAME_CACHE_CHARS_MAX = 64;
/** What an error message quotes of a client's text, in UTF-16 code units. */
export const QUOTED_TEXT_MAX = 64;
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
/**
 * A body is admitted with this much room and gets more as its bytes arrive, so that a slow sender
 * holds what it has sent and not what it has announced.
 */
export const BODY_ROOM_STEP_BYTES = 256 * KIB;
/** A body that does not come at once is collected in pieces of memory of this size. */
export const BODY_SLAB_BYTES = 64 * KIB;
/** An admitted body that needs more room waits this long for it before it gets 429. */
export const BODY_ROOM_WAIT_MS = 10_000;
/**
 * Batches that are prepared or wait for the writer; further bodies wait as they came. The writer
 * has one of 10,000 usual events and the next one is being prepared; of smaller ones several
 * commits wait.
 */
export const PREPARED_BYTES_MAX = 8 * MIB;
/** Smaller bodies are prepared in less time than another thread takes to answer. */
export const BATCH_THREAD_BODY_BYTES_MIN = 16 * KIB;
/**
 * Memory in which a batch is prepared is kept for the next one up to this size, on each thread:
 * that of 10,000 events of usual sizes. To make it anew for each would cost more than all else.
 */
export const ENCODER_KEPT_BYTES_MAX = 12 * MIB;
/** A text of all events of a batch leaves that memory by blocks of about this size. */
export const BLOCK_TEXT_BYTES = 128 * KIB;
/**
 * Memory of large bodies and their lines that is kept for the next ones: what four clients with
 * batches of 10,000 usual events have on their way.
 */
export const POOLED_BYTES_MAX = 32 * MIB;
/** Smaller memory costs little to have anew. */
export const POOLED_BYTES_MIN = 128 * KIB;
/**
 * Threads that prepare larger ones, where there are processors for them beside the writer's: each
 * takes 30 MiB, and on two processors a second one brings nothing.
 */
export const BATCH_THREADS_MAX = 2;
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
 * A server to which nobody has connected for this long looks whether it still accepts connections;
 * one that does not opens its socket anew after as long again.
 */
export const ACCEPT_PROBE_INTERVAL_MS = 5_000;
/**
 * A response can come before the request's body has. What still comes is read and dropped, so that
 * the client gets to read the response, but no more than this: twice the largest body.
 */
export const DRAIN_BYTES_MAX = 64 * MIB;
/** And no longer than this. */
export const DRAIN_TIMEOUT_MS = 10_000;
/**
 * A replay page up to this size is sent in one write with its length; a longer one is streamed, a
 * chunk of the log at a time, so that a client holds no more than that.
 */
export const REPLAY_WHOLE_BYTES_MAX = 256 * KIB;
/**
 * Pieces without an event, from a long scan for rare ones, after which the page is streamed: only a
 * response that is under way tells when its client has gone.
 */
export const REPLAY_EMPTY_PIECES_MAX = 16;

// The log.

/**
 * A commit takes no batch that brings its events over this size, so that the batch at the head of
 * the queue waits for one bounded write. A single larger batch is a commit of its own.
 */
export const COMMIT_BYTES_SOFT_MAX = 8 * MIB;
/** Events of a commit that are filled in before others get a turn: a few milliseconds of work. */
export const COMMIT_SLICE_EVENTS = 2000;
/** A batch of so many events is filled before its turn, while others are committed. */
export const LARGE_BATCH_EVENTS_MIN = COMMIT_SLICE_EVENTS;
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
/** A scan that finds nothing tells so each time it has read this much: its reader may be gone. */
export const SCAN_PAUSE_BYTES = 4 * MIB;
/**
 * Spacing of the sparse in-memory index over a commit file: a page starts at most this far early.
 */
export const INDEX_INTERVAL_BYTES = 64 * KIB;
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
/**
 * The same of the first thread of a command. A runtime left to itself takes up to 128 MiB, and on
 * top of it what values outside of the heap hold until they are collected.
 */
export const YOUNG_HEAP_BYTES = 4 * MIB;
/** How much the old heap of a thread grows, at the most, from one full collection to the next. */
export const HEAP_GROWTH_PERCENT_MAX = 50;
/**
 * Memory in which a commit is read to be sealed is kept for the next file up to this size: that of
 * a batch of 10,000 events of usual sizes.
 */
export const READER_MEMORY_KEPT_BYTES_MAX = 12 * MIB;
/** A thread that seals ends when it has had nothing to do for so long. */
export const SEAL_THREAD_IDLE_MS = 60_000;
/** The thread that seals stands still after so much work: others wait that long at the most. */
export const PACE_WORK_MS = 1;
/** And no longer than this, however long the work took. */
export const PACE_PAUSE_MS_MAX = 100;
/** The share of its time that it works when little is to be sealed. */
export const PACE_SHARE_MIN = 1 / 4;
/**
 * With so much to be sealed it works without pauses. Between, its share grows with what waits, so
 * that a steady ingest finds a balance and a burst is sealed when it is over.
 */
export const SEAL_BACKLOG_BYTES_MAX = 4 * TAIL_ROTATE_BYTES;
/** A sealing that failed is tried again after this long; each further pause doubles. */
export const SEAL_RETRY_MS = 1000;
export const SEAL_RETRY_MS_MAX = 300_000;
/** The newest commits, kept in memory for those who read at the end of the log. */
export const RECENT_COMMITS_BYTES_MAX = 8 * MIB;
/** Segments in which a page of streams is looked for at the same time. */
export const STREAM_SEEKS_MAX = 32;
/** Anchored stream listings kept in memory at a time; others are counted from the log again. */
export const STREAM_SNAPSHOTS_MAX = 4;
/**
 * What all but the latest of them take together: one of a hundred thousand streams that are not
 * sealed, or in one segment.
 */
export const STREAM_SNAPSHOTS_BYTES_MAX = 4 * MIB;
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
/** What a follower must take within FOLLOW_STALL_TIMEOUT_MS; records are written in such pieces. */
export const FOLLOW_PIECE_BYTES = 16 * KIB;
/** Live records kept for other followers to share; a larger one is shared only while it is read. */
export const LIVE_PAGES_BYTES_MAX = 4 * MIB;
/** Followers woken in one turn of the event loop: about half a millisecond of work. */
export const WAKES_PER_TURN_MAX = 64;
/** A follower that takes no bytes for this long while data waits is ended. */
export const FOLLOW_STALL_TIMEOUT_MS = 60_000;

/** One read of a commit file; also the size of the pieces a replay response is written in. */
export const READ_CHUNK_BYTES = 256 * KIB;
/** Memory for such a chunk, or for a follow record of as many bytes and what frames its events. */
export const CHUNK_MEMORY_BYTES = READ_CHUNK_BYTES + 4 * KIB;
/** Memory of chunks that is kept for the next ones: 4 MiB. */
export const CHUNKS_KEPT_MAX = 16;

// Segments. Their bounds are part of the format: a reader refuses what exceeds them.

/** A row group is what a reader decodes at once: four pages of replay at the default limit. */
export const ROW_GROUP_EVENTS_MAX = 4096;
/**
 * A row group ends before the event that would take its lines beyond this. A longer event is a row
 * group of its own, so its lines are never more than COMMIT_BODY_BYTES_MAX.
 */
export const ROW_GROUP_BYTES_SOFT_MAX = 8 * MIB;
/** Parquet pages before compression: what an engine that uses the page index reads at the least. */
export const SEGMENT_PAGE_BYTES = 48 * KIB;
/** A segment takes no more commits once it has so many events. Bounds its footer. */
export const SEGMENT_EVENTS_SOFT_MAX = 256 * KIB;
/**
 * Nor once its lines have this size. A sealing that is cut off does one segment again at the most:
 * those in the manifest stay.
 */
export const SEGMENT_BYTES_SOFT_MAX = 512 * MIB;
/**
 * A segment being written is synced whenever so much more of it is: a larger heap of unwritten
 * bytes would hold up the sync of a commit beside it.
 */
export const SEGMENT_SYNC_BYTES = 2 * MIB;
/** Longest footer a reader accepts: every event of a segment may have a stream of its own. */
export const SEGMENT_FOOTER_BYTES_MAX = 192 * MIB;
/** What the footer says of one stream, at the most: two names, a count and an id. */
export const LIST_ENTRY_BYTES_MAX = 384;
/** And of one source: a name and an id. */
const SOURCE_ENTRY_BYTES_MAX = 200;
/** What is read at once of a list in a footer: some twenty streams or more. */
export const LIST_BLOCK_BYTES = 4 * KIB;
/** Memories of such reads that are kept for the next ones: about 1 MiB. */
export const LIST_MEMORIES_KEPT_MAX = 8 * STREAM_SEEKS_MAX;
/** Entries of such lists that are kept in memory, of all segments together: about 5 MiB. */
export const LIST_ENTRIES_CACHED_MAX = 48 * KIB;
/** What of a footer is read at first; it mostly has the places of all row groups. */
export const FOOTER_READ_BYTES = 64 * KIB;
/**
 * Longest beginning of a footer a reader accepts, up to its lists: the places of all row groups, of
 * which a segment has few hundred at the most.
 */
export const FOOTER_HEAD_BYTES_MAX = 8 * MIB;
/** Longest filter over the keys of a segment that a reader accepts. */
export const KEY_FILTER_BYTES_MAX = 4 * MIB;
/** A stored event has no fewer, for its member names, id, time and hashes. */
export const EVENT_BYTES_MIN = 330;
/** Longest Bloom filter of a row group that a reader accepts. */
export const BLOOM_FILTER_BYTES_MAX = 64 * KIB;
/**
 * Bloom filters kept in memory, of all segments together. Those of ten million record keys take 20
 * MiB.
 */
export const BLOOM_FILTER_CACHE_BYTES_MAX = 24 * MIB;
/**
 * Those over the batch ids of a segment are among them up to this size, with batches of 50 events
 * or more. Larger ones are asked in the file: only where the filter over all keys of the segment
 * has let a batch pass.
 */
export const BATCH_FILTERS_KEPT_BYTES_MAX = 16 * KIB;
/** Bytes between two columns that are read with them: another read would cost more. */
export const READ_GAP_BYTES_MAX = 64 * KIB;
/**
 * Events that pass a filter, up to so many of a row group, are read by the pages that hold them.
 * For more the row group is read as a whole and kept: most of its pages are needed then.
 */
export const LOOKUP_ROWS_MAX = 64;
/**
 * Filters over the keys of segments kept in memory, those of the newest ones: the keys of ten
 * million batches of one event and of the streams in each segment take 57 MiB. Of older segments
 * the writer asks the files, each for every new batch.
 */
export const KEY_FILTERS_BYTES_MAX = 60 * MIB;
/** Last events of sealed sources, and of sealed streams, kept in memory: about 4 MiB each. */
export const FRONTIERS_CACHED_MAX = 16 * KIB;
/** Segments open at a time, beside those that are being read. */
export const SEGMENTS_OPEN_MAX = 128;
/**
 * Memory kept to decode row groups in: what one of the largest ordinary size takes, its pages
 * compressed and decompressed. A larger one is decoded in memory of its own.
 */
export const DECODE_MEMORY_BYTES_MAX = 16 * MIB;
/** How often that is there: one row group is decoded at a time, by the one thread there is. */
export const DECODE_MEMORIES_MAX = 1;
/**
 * Hashes of record keys kept in memory, two bytes for each event of the row groups in which keys
 * were looked for: four million events.
 */
export const KEY_ROWS_CACHE_BYTES_MAX = 8 * MIB;
/**
 * Lines of a row group that are decoded at once, about: a page of replay at the default limit has
 * two or three such parts.
 */
export const ROW_GROUP_PART_BYTES = 384 * KIB;
/** Memory that such a part is decoded to: some are a little longer. */
export const PART_MEMORY_BYTES = 512 * KIB;
/**
 * Decoded parts of row groups kept in memory. Sixteen of ordinary size: some for each of several
 * readers that page through sealed history at different places.
 */
export const ROW_GROUP_CACHE_BYTES_MAX = 8 * MIB;
/**
 * Row groups kept open for readers that go on in order, a megabyte each at the ordinary size: their
 * compressed bytes, and of each column one page. Of another one the next part is opened anew.
 */
export const ROW_GROUP_CURSORS_BYTES_MAX = 8 * MIB;
/** Ids of the first events of parts kept in memory: those of thirty million events. */
export const ROW_GROUP_STARTS_CACHE_BYTES_MAX = 1 * MIB;

// Verification.

/** Takes of the inventory that a writer may overtake, moving files, before it is given up. */
export const INVENTORY_TAKES_MAX = 100;
/**
 * Places for the identities of batches, 16 bytes each, that a verification keeps at a time: three
 * million batches in 64 MiB, half as much again while it grows. A log with more is read again,
 * without its payloads.
 */
export const IDENTITY_SLOTS_MAX = 4 * MIB;

/** Lines whose hashes are recomputed ahead of their check: two row groups of the largest size. */
export const HASH_AHEAD_BYTES_MAX = 16 * MIB;
/** A log with less than this is verified before a thread that helps would have started. */
export const HASH_THREAD_LOG_BYTES_MIN = 16 * MIB;
/** The same of the segments of a log, which are smaller than what they were made from. */
export const SEGMENT_THREAD_LOG_BYTES_MIN = 8 * MIB;
/** Threads that verify segments, with 32 to 64 MiB each; no more than there are processors. */
export const SEGMENT_THREADS_MAX = 8;

// The client.

/** Connections one client holds at a time; further requests wait for a free one. */
export const CLIENT_SOCKETS_MAX = 64;
/** A connection without use for this long is closed. */
export const CLIENT_IDLE_TIMEOUT_MS = 30_000;
/** Attempts at one request; with the pauses below, a service may be away for more than a minute. */
export const CLIENT_ATTEMPTS_MAX = 20;
/** The first pause between attempts; each further one doubles, up to the longest. */
export const CLIENT_BACKOFF_MS = 100;
export const CLIENT_BACKOFF_MS_MAX = 5_000;
/** The longest `Retry-After` that is waited for. */
export const CLIENT_RETRY_AFTER_MS_MAX = 60_000;
/** How long an append or a retirement may take, all attempts and pauses together. */
export const CLIENT_WRITE_TIMEOUT_MS = 60_000;
/** Longest line of a follow response: a record of one event, as large as a request can make it. */
export const CLIENT_LINE_BYTES_MAX = 160 * MIB;

/** Bytes a stored event line can add to what its request carried. */
const EVENT_OVERHEAD_BYTES_MAX = 8 * KIB;

// The command line.

/**
 * A configuration has seven keys; a larger file is some other file. Refused before it is parsed.
 */
export const CONFIG_FILE_BYTES_MAX = 64 * KIB;
/** What a message about the configuration quotes of a value, in UTF-16 code units. */
export const CONFIG_VALUE_SHOWN_MAX = 200;
/** A longer token would not fit the header section of a request. */
export const TOKEN_BYTES_MAX = 4096;
/** `sockaddr_un.sun_path` without its terminating NUL, on Linux. */
export const SOCKET_PATH_BYTES_MAX_LINUX = 107;
/** The same on macOS and the BSDs. */
export const SOCKET_PATH_BYTES_MAX_BSD = 103;
/**
 * How long an existing socket may take to accept or refuse a connection before it counts as live.
 */
export const SOCKET_PROBE_TIMEOUT_MS = 1000;
/** How long a held lock is waited for where only a waiting flock(2) can be asked for. */
export const LOCK_WAIT_MS = 500;
/** `deno task` hands on a Ctrl-C that its child got from the terminal a moment before. */
export const SIGNAL_ECHO_MS = 100;
/** Progress of long work is shown so often on a terminal. */
export const PROGRESS_INTERVAL_MS = 200;
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
  SEGMENT_FOOTER_BYTES_MAX >=
    FOOTER_HEAD_BYTES_MAX +
      SEGMENT_EVENTS_MAX * (LIST_ENTRY_BYTES_MAX + SOURCE_ENTRY_BYTES_MAX),
  "the footer of the fullest segment is accepted",
);
assert(
  KEY_FILTER_BYTES_MAX >= SEGMENT_EVENTS_MAX * 3 * 3,
  "three keys of three bytes for each event fit the filter of a segment",
);

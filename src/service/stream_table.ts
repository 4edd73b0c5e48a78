/**
 * The streams as they are now. Built from the log when it is first asked for, then kept up with
 * each commit; nothing of it is on disk.
 */
import { assert } from "../assert.ts";
import type { StreamGrowth } from "../log/commit_builder.ts";
import { walkEvents } from "../log/event_walk.ts";
import type { LogSnapshot } from "../log/snapshot.ts";
import { lineEventId, lineSourceAndStream } from "../log/stored_line.ts";
import { StreamCounts } from "./stream_counts.ts";

/** The streams at an event. */
export interface StreamsAt {
  counts: StreamCounts;
  /** Last event that is counted; null for an empty log. */
  throughEventId: string | null;
}

interface Growth {
  source: string;
  streams: readonly StreamGrowth[];
}

export class StreamTable {
  readonly #snapshot: () => LogSnapshot;
  #live: StreamsAt | null = null;
  #loading: Promise<StreamsAt> | null = null;
  /** What was committed while the log was being read. */
  #missed: Growth[] = [];

  /** @param snapshot what is durable now. */
  constructor(snapshot: () => LogSnapshot) {
    this.#snapshot = snapshot;
  }

  /** Takes in a durable batch; called for every one, in log order. */
  add(source: string, streams: readonly StreamGrowth[]): void {
    if (this.#live !== null) addGrowth(this.#live, { source, streams });
    else if (this.#loading !== null) this.#missed.push({ source, streams });
  }

  /**
   * The streams now. To be read before anything else is awaited: it changes with the next commit.
   */
  async live(): Promise<StreamsAt> {
    return this.#live ?? await (this.#loading ??= this.#load());
  }

  /** Last event of a stream; null when it has none. */
  async frontier(source: string, stream: string): Promise<string | null> {
    return (await this.live()).counts.frontier(source, stream);
  }

  async #load(): Promise<StreamsAt> {
    try {
      const snapshot = this.#snapshot();
      const live = { counts: await countStreams(snapshot), throughEventId: snapshot.frontier };
      for (const growth of this.#missed) addGrowth(live, growth);
      this.#live = live;
      return live;
    } finally {
      this.#missed = [];
      this.#loading = null;
    }
  }
}

/**
 * Counts the streams of a snapshot, up to an event that it holds when `through` is given. A file
 * that tells its counts is not read.
 */
export async function countStreams(snapshot: LogSnapshot, through?: string): Promise<StreamCounts> {
  const counts = new StreamCounts();
  for (const file of snapshot.files) {
    if (file.streams !== null && (through === undefined || file.lastEventId <= through)) {
      const cursor = await file.streams.seek("");
      for (; cursor.current !== null; await cursor.next()) {
        const { key, events, lastEventId } = cursor.current;
        const [source, stream] = key.split(" ") as [string, string];
        counts.add(source, stream, events, lastEventId);
      }
    } else {
      await countEvents(counts, { ...snapshot, files: [file] }, through);
    }
    if (through !== undefined && file.lastEventId >= through) break;
  }
  return counts;
}

async function countEvents(
  counts: StreamCounts,
  snapshot: LogSnapshot,
  through: string | undefined,
): Promise<void> {
  await walkEvents(snapshot, undefined, (chunk, start) => {
    const eventId = lineEventId(chunk, start);
    if (through !== undefined && eventId > through) return false;
    const { source, stream } = lineSourceAndStream(chunk, start);
    counts.add(source, stream, 1, eventId);
    return true;
  });
}

function addGrowth(live: StreamsAt, { source, streams }: Growth): void {
  for (const { stream, events, lastEventId } of streams) {
    live.counts.add(source, stream, events, lastEventId);
    const through: string | null = live.throughEventId;
    if (through === null || through < lastEventId) live.throughEventId = lastEventId;
  }
  assert(streams.length > 0, "a batch grows a stream");
}

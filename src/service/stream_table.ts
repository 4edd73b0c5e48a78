/**
 * The streams as they are now. Those of events that are not sealed are in memory, a count for each
 * file: made from the lines when first asked for, then kept up with each commit, and dropped with
 * the file. Those of segments are looked up there.
 */
import { assert } from "../assert.ts";
import type { StreamGrowth } from "../log/wal/commit_builder.ts";
import { walkEvents } from "../log/read/event_walk.ts";
import type { SealedHistory } from "../log/segment/sealed_history.ts";
import type { LogFile, LogSnapshot } from "../log/read/snapshot.ts";
import { lineEventId, lineSourceAndStream } from "../log/line/stored_line.ts";
import { StreamCounts } from "../log/segment/stream_counts.ts";
import type { StreamPlaces } from "./stream_merge.ts";

/** The streams at an event; later commits change nothing of it. */
export interface StreamsAt extends StreamPlaces {
  /** Last event that is counted; null for an empty log. */
  throughEventId: string | null;
}

export class StreamTable {
  readonly #snapshot: () => LogSnapshot;
  #sealed: SealedHistory | null = null;
  /** How many files are not sealed, the tail among them, as they were told. */
  #generations = 1;
  /** For each of them, from oldest to newest; null before it is first asked for. */
  #counts: StreamCounts[] | null = null;
  #loading: Promise<void> | null = null;
  /** What was told while the log was being read. */
  #missed: (() => void)[] = [];

  /** @param snapshot what is durable now. */
  constructor(snapshot: () => LogSnapshot) {
    this.#snapshot = snapshot;
  }

  /** Takes in what is sealed, before anything else. */
  open(sealed: SealedHistory): void {
    this.#sealed = sealed;
  }

  /** Takes in a durable batch; called for every one, in log order. */
  add(source: string, streams: readonly StreamGrowth[]): void {
    if (this.#counts !== null) addGrowth(this.#counts.at(-1)!, source, streams);
    else if (this.#loading !== null) this.#missed.push(() => this.add(source, streams));
  }

  /** What is taken in from now on is in a new file. */
  rotated(): void {
    this.#generations += 1;
    if (this.#counts !== null) this.#counts.push(new StreamCounts());
    else if (this.#loading !== null) {
      this.#missed.push(() => this.#counts!.push(new StreamCounts()));
    }
  }

  /** The oldest file is in the sealed history from this turn of the event loop on. */
  dropSealed(): void {
    this.#generations -= 1;
    assert(this.#generations > 0, "the tail is never sealed");
    if (this.#counts !== null) this.#counts.shift();
    else if (this.#loading !== null) this.#missed.push(() => this.#counts!.shift());
  }

  /** The streams now. */
  async live(): Promise<StreamsAt> {
    const counts = await this.#loaded();
    const { files, frontier } = this.#snapshot();
    const sealed = files.map(({ streams }) => streams).filter((streams) => streams !== null);
    return { sealed, counts: counts.map((count) => count.copy()), throughEventId: frontier };
  }

  /** Last event of a stream; null when it has none. */
  async frontier(source: string, stream: string): Promise<string | null> {
    for (const counts of (await this.#loaded()).toReversed()) {
      const frontier = counts.frontier(source, stream);
      if (frontier !== null) return frontier;
    }
    return await this.#sealed?.streamFrontier(source, stream) ?? null;
  }

  /** To be read before anything else is awaited: it changes with the next commit. */
  async #loaded(): Promise<StreamCounts[]> {
    while (this.#counts === null) await (this.#loading ??= this.#load());
    return this.#counts;
  }

  async #load(): Promise<void> {
    try {
      const generations = this.#generations;
      const counts = [];
      for (const file of unsealedFiles(this.#snapshot())) counts.push(await countEvents([file]));
      assert(counts.length >= generations - 1, "only the tail may be empty");
      if (counts.length < generations) counts.push(new StreamCounts());
      this.#counts = counts;
      for (const change of this.#missed) change();
    } finally {
      this.#missed = [];
      this.#loading = null;
    }
  }
}

/** The files of a snapshot that are not sealed, from oldest to newest. */
export function unsealedFiles({ files }: LogSnapshot): readonly LogFile[] {
  const first = files.findIndex(({ streams }) => streams === null);
  return first < 0 ? [] : files.slice(first);
}

/** Counts the events of files, from oldest to newest, up to one of them when it is given. */
export async function countEvents(
  files: readonly LogFile[],
  through?: string,
): Promise<StreamCounts> {
  const counts = new StreamCounts();
  const frontier = files.at(-1)?.lastEventId ?? null;
  await walkEvents({ files, frontier }, undefined, (chunk, start) => {
    const eventId = lineEventId(chunk, start);
    if (through !== undefined && eventId > through) return false;
    const { source, stream } = lineSourceAndStream(chunk, start);
    counts.add(source, stream, 1, eventId);
    return true;
  });
  return counts;
}

function addGrowth(counts: StreamCounts, source: string, streams: readonly StreamGrowth[]): void {
  assert(streams.length > 0, "a batch grows a stream");
  for (const { stream, events, lastEventId } of streams) {
    counts.add(source, stream, events, lastEventId);
  }
}

/** Counts the events of each stream of a segment, for its footer and for the check of one. */
import { compareStreams, type StreamCount } from "./segment_metadata.ts";

export class StreamCounter {
  readonly #sources = new Map<string, Map<string, StreamCount>>();
  /** Events mostly follow others of their stream. */
  #last: StreamCount | null = null;

  /** Takes in events of one stream, the last of which has that id. */
  add(source: string, stream: string, events: number, lastEventId: string): void {
    if (this.#last === null || this.#last.stream !== stream || this.#last.source !== source) {
      this.#last = this.#count(source, stream);
    }
    this.#last.events += events;
    this.#last.last_event_id = lastEventId;
  }

  /** All streams in order of source, then stream. */
  list(): StreamCount[] {
    return [...this.#sources.values()].flatMap((streams) => [...streams.values()])
      .sort(compareStreams);
  }

  #count(source: string, stream: string): StreamCount {
    let streams = this.#sources.get(source);
    if (streams === undefined) this.#sources.set(source, streams = new Map());
    let count = streams.get(stream);
    if (count === undefined) {
      streams.set(stream, count = { source, stream, events: 0, last_event_id: "" });
    }
    return count;
  }
}

/**
 * Builds the index of one segment. The writer stores it behind the row groups; `verify` and the
 * read-back compare it with the one in the file.
 */
import { Buffer } from "node:buffer";
import { mergedStreams } from "../read/merged_streams.ts";
import { StreamCounts } from "../read/stream_counts.ts";
import { EntryList } from "./entries.ts";
import { NO_COVERAGE } from "./index_format.ts";
import { writeIndex } from "./index_writer.ts";
import { batchHash, type FilteredColumn, streamHash, valueHash } from "./key_hash.ts";

export class IndexBuilder {
  readonly #streams = new StreamCounts();
  readonly #identities = new EntryList();
  readonly #locations = new EntryList();
  /** Values that the current row group is known to have. */
  readonly #known: Record<FilteredColumn, Set<string>> = {
    record_key: new Set(),
    stream: new Set(),
    source: new Set(),
    kind: new Set(),
  };
  #batches = 0;
  #rowGroup = 0;

  /** Adds a batch that starts in the current row group. */
  addBatch(source: string, batchId: string): void {
    this.#batches += 1;
    this.#identities.add(batchHash(source, batchId), this.#rowGroup);
  }

  /** Adds `events` events of a stream in the current row group, up to `lastEventId`. */
  addEvents(source: string, stream: string, events: number, lastEventId: string): void {
    this.addValue("stream", stream);
    this.addValue("source", source);
    this.#streams.add(source, stream, events, lastEventId);
    this.#streams.add(source, "", events, lastEventId);
  }

  /** Adds a value in the current row group, by which readers filter. */
  addValue(column: FilteredColumn, value: string): void {
    const known = this.#known[column];
    if (known.has(value)) return;
    known.add(value);
    this.#locations.add(valueHash(column, value), this.#rowGroup);
  }

  endRowGroup(): void {
    for (const known of Object.values(this.#known)) known.clear();
    this.#rowGroup += 1;
  }

  /** Returns the index. Called once, after the last event. */
  async finish(): Promise<Buffer> {
    const streams = [];
    for await (const block of mergedStreams([this.#streams], "")) streams.push(...block);
    // Where in the segment a stream is, `locations` says.
    for (const { key } of streams) this.#identities.add(streamHash(key), 0);
    const pieces: Buffer[] = [];
    await writeIndex({
      coverage: NO_COVERAGE,
      batches: this.#batches,
      streams: [streams],
      identities: [this.#identities.sorted()],
      locations: [this.#locations.sorted()],
    }, (bytes) => void pieces.push(bytes));
    return Buffer.concat(pieces);
  }
}

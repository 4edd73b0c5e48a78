/**
 * Writes row groups, and the end of the file that describes them: page indexes, Bloom filters, and
 * the footer. What is known of the rows (which values repeat, that ids increase) spares the work of
 * finding it out.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { VERSION } from "../../version.ts";
import { UUID_BYTES } from "../line/line_bytes.ts";
import { BLOOM_CRC_BYTES, buildBloomFilter, encodeBloomFilter } from "../parquet/bloom_filter.ts";
import {
  type Compare,
  compareBytes,
  compareIntegers,
  type Statistics,
  statisticsOf,
} from "../parquet/column_statistics.ts";
import { type ColumnIndexes, ColumnWriter } from "../parquet/column_writer.ts";
import { Dictionary } from "../parquet/dictionary.ts";
import { type ColumnMetadata, type RowGroupMetadata } from "../parquet/file_metadata.ts";
import type { FileSink } from "../parquet/file_sink.ts";
import { encodeFooter, MAGIC } from "../parquet/footer.ts";
import { PlainValues, plainValues } from "../parquet/plain_values.ts";
import type { SegmentIndexContent } from "./segment_index.ts";
import { encodeMetadata, METADATA_KEY, type SegmentMetadata } from "./segment_metadata.ts";
import type { RowGroupRows } from "./segment_rows.ts";
import {
  BLOOM_FILTERS,
  COLUMN_NAMES,
  columnElement,
  type ColumnName,
  SEGMENT_SCHEMA,
} from "./segment_schema.ts";
import { type StreamEntry, streamIndexBlocks } from "./stream_index.ts";

const CREATED_BY = `service version ${VERSION}`;
/** Blocks of the stream index that are written at a time. */
const STREAM_BLOCKS_WRITTEN = 256;
const NO_VALUES = Buffer.alloc(0);

/** A column of a row group, and what of it is written behind all row groups. */
interface WrittenColumn extends ColumnIndexes {
  metadata: ColumnMetadata;
  bloomFilter: Buffer | null;
}

export class RowGroupWriter {
  readonly #sink: FileSink;
  readonly #rowGroups: RowGroupMetadata[] = [];
  readonly #columns: WrittenColumn[] = [];
  readonly #dictionaryValues: PlainValues = new PlainValues();

  constructor(sink: FileSink) {
    this.#sink = sink;
    sink.append(MAGIC);
  }

  /** Writes the rows as the next row group; they may change when this is done. */
  async write(rows: RowGroupRows): Promise<void> {
    const columns = COLUMN_NAMES.map((name) => this.#writeColumn(name, rows));
    this.#columns.push(...columns);
    this.#rowGroups.push({
      rows: rows.rows,
      columns: columns.map(({ metadata }) => metadata),
    });
    await this.#sink.flush();
  }

  /**
   * Ends the file.
   * @param facts what the metadata says beside the content of the index.
   * @param content of all rows that were written.
   */
  async finish(
    facts: Omit<SegmentMetadata, "key_filter" | "stream_index">,
    { entries, keyFilter }: SegmentIndexContent,
  ): Promise<void> {
    this.#writeIndexes();
    const key_filter = { bytes: keyFilter.length, offset: this.#sink.offset };
    this.#sink.append(keyFilter);
    const stream_index = await this.#writeStreamIndex(entries);
    const metadata = encodeMetadata({ ...facts, key_filter, stream_index });
    this.#sink.append(encodeFooter({
      schema: SEGMENT_SCHEMA,
      rowGroups: this.#rowGroups,
      keyValues: { [METADATA_KEY]: metadata },
      createdBy: CREATED_BY,
    }));
    await this.#sink.flush();
  }

  /** @returns where it is. */
  async #writeStreamIndex(
    entries: Iterable<StreamEntry>,
  ): Promise<SegmentMetadata["stream_index"]> {
    const { offset } = this.#sink;
    let blocks = 0;
    let index_bytes = 0;
    for (const block of streamIndexBlocks(entries)) {
      this.#sink.append(block);
      index_bytes = block.length;
      if (++blocks % STREAM_BLOCKS_WRITTEN === 0) await this.#sink.flush();
    }
    return { bytes: this.#sink.offset - offset, index_bytes, offset };
  }

  #writeColumn(name: ColumnName, rows: RowGroupRows): WrittenColumn {
    const writer = new ColumnWriter(this.#sink);
    const column = rows[name];
    if (column instanceof Dictionary) this.#writeDictionary(writer, name, column);
    else if (name === "occurred_at") writeOptional(writer, column, rows.occurredAtLevels);
    else writePlain(writer, name, column);
    const { metadata, indexes } = writer.finish(compareOf(name));
    return { metadata, ...indexes, bloomFilter: bloomFilterOf(name, rows) };
  }

  #writeDictionary(
    writer: ColumnWriter,
    name: ColumnName,
    { values, indices }: Dictionary,
  ): void {
    const isFixed = columnElement(name).type !== "BYTE_ARRAY";
    const plain = this.#dictionaryValues;
    plain.clear();
    for (const value of values) {
      if (isFixed) plain.addFixed(value);
      else plain.add(value);
    }
    const hasStatistics = name !== "batch_id" && name !== "batch_digest";
    const statistics = hasStatistics ? statisticsOf(values, compareOf(name)) : undefined;
    writer.writeDictionary(plain.bytes, values.length);
    writer.writeIndices(indices, values.length, statistics);
  }

  /** Each kind lies together, in the order of row groups and columns. */
  #writeIndexes(): void {
    for (const kind of ["columnIndex", "offsetIndex", "bloomFilter"] as const) {
      for (const column of this.#columns) {
        const bytes = column[kind];
        if (bytes === null) continue;
        const start = this.#sink.offset;
        const crcBytes = kind === "bloomFilter" ? BLOOM_CRC_BYTES : 0;
        column.metadata[kind] = { start, end: start + bytes.length - crcBytes };
        this.#sink.append(bytes);
      }
    }
  }
}

function writePlain(writer: ColumnWriter, name: ColumnName, column: PlainValues): void {
  for (const { bytes, values } of column.pages()) {
    const statistics = name === "event_id" ? idStatistics(bytes) : undefined;
    writer.writePage(bytes, { rows: values, statistics });
  }
}

/** A column in which rows may have no value, with at least one page. */
function writeOptional(writer: ColumnWriter, column: PlainValues, levels: Uint8Array): void {
  const pages = column.pages();
  if (pages.length === 0) pages.push({ bytes: NO_VALUES, values: 0 });
  let row = 0;
  pages.forEach(({ bytes, values }, place) => {
    const start = row;
    for (let seen = 0; seen < values; row++) seen += levels[row]!;
    // Rows without a value go to the page before them.
    while (row < levels.length && levels[row] === 0) row += 1;
    assert(place < pages.length - 1 || row === levels.length, "the pages hold all rows");
    writer.writePage(bytes, {
      rows: row - start,
      levels: levels.subarray(start, row),
      statistics: statisticsOf(plainValues(bytes), compareBytes, row - start - values),
    });
  });
}

/** Of ids, which increase: the first and the last one. */
function idStatistics(ids: Buffer): Statistics {
  const min = Uint8Array.from(ids.subarray(0, UUID_BYTES));
  const max = Uint8Array.from(ids.subarray(-UUID_BYTES));
  return { min, max, nulls: 0 };
}

function compareOf(name: ColumnName): Compare {
  return name === "observed_at" ? compareIntegers : compareBytes;
}

function bloomFilterOf(name: ColumnName, rows: RowGroupRows): Buffer | null {
  switch (name) {
    case "stream":
    case "batch_id":
      return encodeBloomFilter(buildBloomFilter(rows[name].values, BLOOM_FILTERS[name]));
    case "record_key": {
      const keys = plainValues(rows[name].bytes);
      return encodeBloomFilter(buildBloomFilter(keys, BLOOM_FILTERS[name]));
    }
    default:
      return null;
  }
}

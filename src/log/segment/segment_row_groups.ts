/**
 * Writes row groups, and the end of the file that describes them. Columns, pages and bounds are
 * made here, because what is known of the rows (which values repeat, that ids increase) spares the
 * work of finding it out; the Parquet library spells headers, indexes, filters and footer.
 */
import { crc32 } from "node:zlib";
import type { FileMetaData, RowGroup } from "hyparquet";
import { ByteWriter } from "hyparquet-writer";
import { writeBlooms } from "hyparquet-writer/src/bloom.js";
import { writeIndexes } from "hyparquet-writer/src/indexes.js";
import { writeMetadata } from "hyparquet-writer/src/metadata.js";
import type { PageIndexes } from "hyparquet-writer/src/types.js";
import { assert } from "../../assert.ts";
import { VERSION } from "../../version.ts";
import { buildBloomFilter } from "../parquet/bloom_filter.ts";
import { type ColumnBounds, ColumnChunkWriter } from "../parquet/column_chunk.ts";
import { Dictionary } from "../parquet/dictionary.ts";
import { FULL_SPEED, type Pace, paced } from "../sealing/pace.ts";
import { PlainValues } from "../parquet/plain_values.ts";
import { idBounds, textBounds, timeBounds } from "./segment_bounds.ts";
import type { SegmentIndexContent } from "./segment_index.ts";
import { encodeMetadata, METADATA_KEY, type SegmentMetadata } from "./segment_metadata.ts";
import type { RowGroupRows } from "./segment_rows.ts";
import {
  BLOOM_FILTERS,
  BOUND_BYTES_MAX,
  COLUMN_NAMES,
  columnElement,
  type ColumnName,
  SEGMENT_SCHEMA,
} from "./segment_schema.ts";
import type { SegmentSink } from "./segment_sink.ts";
import type { StreamEntry } from "../read/stream_counts.ts";
import { streamIndexBlocks } from "./stream_index.ts";

const CREATED_BY = `service version ${VERSION}`;
/** "PAR1" as an integer, the lowest byte first. */
const MAGIC = 0x31524150;
/** Version of the format whose data pages these are. */
const FORMAT_VERSION = 2;
/** Blocks of the stream index that are written at a time. */
const STREAM_BLOCKS_WRITTEN = 256;
const NO_VALUES = new Uint8Array();

export class RowGroupWriter {
  readonly #sink: SegmentSink;
  readonly #rowGroups: RowGroup[] = [];
  readonly #columns: PageIndexes[] = [];
  readonly #pace: Pace;
  readonly #dictionaryValues: PlainValues = new PlainValues();
  #rows = 0;

  constructor(sink: SegmentSink, pace: Pace = FULL_SPEED) {
    this.#sink = sink;
    this.#pace = pace;
    sink.appendUint32(MAGIC);
  }

  /** Writes the rows as the next row group; they may change when this is done. */
  async write(rows: RowGroupRows): Promise<void> {
    const start = this.#sink.offset;
    const columns = COLUMN_NAMES.map((name) => this.#writeColumn(name, rows));
    const chunks = columns.map(({ chunk }) => chunk);
    this.#columns.push(...columns);
    this.#rowGroups.push({
      columns: chunks,
      num_rows: BigInt(rows.rows),
      total_byte_size: chunks.reduce((sum, c) => sum + c.meta_data!.total_uncompressed_size, 0n),
      total_compressed_size: BigInt(this.#sink.offset - start),
    });
    this.#rows += rows.rows;
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
    writeIndexes(this.#sink, this.#columns);
    writeBlooms(this.#sink, this.#columns);
    const key_filter = { bytes: keyFilter.length, offset: this.#sink.offset };
    this.#sink.appendBytes(keyFilter);
    const stream_index = await this.#writeStreamIndex(entries);
    const footer: Omit<FileMetaData, "metadata_length"> = {
      version: FORMAT_VERSION,
      created_by: CREATED_BY,
      schema: SEGMENT_SCHEMA,
      num_rows: BigInt(this.#rows),
      row_groups: this.#rowGroups,
      key_value_metadata: [
        { key: METADATA_KEY, value: encodeMetadata({ ...facts, key_filter, stream_index }) },
      ],
    };
    const footerWriter = new ByteWriter();
    writeMetadata(footerWriter, footer as FileMetaData, BOUND_BYTES_MAX);
    const footerBytes = footerWriter.getBytes();
    this.#sink.appendUint32(crc32(footerBytes));
    this.#sink.appendBytes(footerBytes);
    this.#sink.appendUint32(MAGIC);
    await this.#sink.finish();
  }

  /** @returns where it is. */
  async #writeStreamIndex(
    entries: Iterable<StreamEntry>,
  ): Promise<SegmentMetadata["stream_index"]> {
    const { offset } = this.#sink;
    let blocks = 0;
    let index_bytes = 0;
    for (const block of streamIndexBlocks(entries)) {
      this.#sink.appendBytes(block);
      index_bytes = block.length;
      if (++blocks % STREAM_BLOCKS_WRITTEN === 0) await this.#sink.flush();
    }
    return { bytes: this.#sink.offset - offset, index_bytes, offset };
  }

  #writeColumn(name: ColumnName, rows: RowGroupRows): PageIndexes {
    this.#pace();
    const chunk = new ColumnChunkWriter(this.#sink, columnElement(name));
    const column = rows[name];
    if (column instanceof Dictionary) this.#writeDictionary(chunk, name, column);
    else if (name === "occurred_at") writeOptional(chunk, column, rows.occurredAtLevels);
    else this.#writePlain(chunk, column);
    return chunk.finish(boundsOf(name, rows), this.#filterOf(name, rows));
  }

  /** A column of dictionary codes; of plain values when each row has one of its own. */
  #writeDictionary(
    chunk: ColumnChunkWriter,
    name: ColumnName,
    { values, codes }: Dictionary,
  ): void {
    const isFixed = columnElement(name).type !== "BYTE_ARRAY";
    const plain = this.#dictionaryValues;
    plain.clear();
    for (const value of values) {
      if (isFixed) plain.addFixed(value);
      else plain.add(value);
    }
    if (values.length === codes.length && values.length > 1) {
      for (const page of plain.pages()) chunk.writePage(page.bytes, { rows: page.values });
    } else {
      chunk.writeDictionary(plain.bytes, values.length);
      chunk.writeCodes(codes, values.length);
    }
  }

  #writePlain(chunk: ColumnChunkWriter, column: PlainValues): void {
    for (const { bytes, values } of paced(column.pages(), this.#pace)) {
      chunk.writePage(bytes, { rows: values });
    }
  }

  #filterOf(name: ColumnName, rows: RowGroupRows): Uint32Array | null {
    switch (name) {
      case "stream":
      case "batch_id":
        return buildBloomFilter(paced(rows[name].values, this.#pace), BLOOM_FILTERS[name]);
      case "record_key":
        return buildBloomFilter(paced(rows[name].values(), this.#pace), BLOOM_FILTERS[name]);
      default:
        return null;
    }
  }
}

/** A column in which rows may have no value, with at least one page. */
function writeOptional(chunk: ColumnChunkWriter, column: PlainValues, levels: Uint8Array): void {
  const pages = column.pages();
  if (pages.length === 0) {
    chunk.writePage(NO_VALUES, { rows: levels.length, levels });
    return;
  }
  let row = 0;
  pages.forEach(({ bytes, values }, place) => {
    const start = row;
    for (let seen = 0; seen < values; row++) seen += levels[row]!;
    // Rows without a value go to the page before them.
    while (row < levels.length && levels[row] === 0) row += 1;
    assert(place < pages.length - 1 || row === levels.length, "the pages hold all rows");
    chunk.writePage(bytes, { rows: row - start, levels: levels.subarray(start, row) });
  });
}

function boundsOf(name: ColumnName, rows: RowGroupRows): ColumnBounds | null {
  switch (name) {
    case "event_id":
      return idBounds(rows.event_id);
    case "source":
    case "stream":
    case "kind":
      return textBounds(rows[name].values, rows[name].values.length);
    case "occurred_at":
      return textBounds(rows.occurred_at.values(), rows.rows);
    case "observed_at":
      return timeBounds(rows.observed_at.values);
    default:
      return null;
  }
}

/** Writes row groups, then the segment's index and its footer, through `hyparquet-writer`. */
import { crc32 } from "node:zlib";
import { type ColumnSource, ParquetWriter } from "hyparquet-writer";
import { canonicalize } from "../../event/json/canonical_json.ts";
import { VERSION } from "../../version.ts";
import type { FileWriter } from "./file_writer.ts";
import { type EventFacts, METADATA_KEY, type SegmentMetadata } from "./segment_metadata.ts";
import type { RowGroupRows } from "./segment_rows.ts";
import { COLUMN_NAMES, type ColumnName, SEGMENT_SCHEMA } from "./segment_schema.ts";

export class RowGroupWriter {
  readonly #file: FileWriter;
  readonly #parquet: ParquetWriter;
  /** Per row group, the CRC-32 of each column chunk: 8 hex digits, in schema order. */
  readonly #chunkCrcs: string[] = [];

  constructor(file: FileWriter) {
    this.#file = file;
    this.#parquet = new ParquetWriter({
      writer: file,
      schema: [...SEGMENT_SCHEMA],
      createdBy: `service version ${VERSION}`,
    });
    file.onRowGroup = (bytes, offset) => void this.#chunkCrcs.push(this.#crcsOf(bytes, offset));
  }

  /** Writes the next row group. */
  async write(rows: RowGroupRows): Promise<void> {
    await this.#parquet.write({
      columnData: COLUMN_NAMES.map((name) => columnOf(name, rows)),
      rowGroupSize: rows.rows,
      // One page per column chunk.
      pageSize: 0,
    });
  }

  /** Writes the index and the footer. @param index the segment's own index, over all rows. */
  async finish(facts: EventFacts, index: Uint8Array): Promise<void> {
    const metadata: SegmentMetadata = {
      ...facts,
      chunk_crcs: this.#chunkCrcs,
      index_start: this.#file.offset,
      index_bytes: index.length,
    };
    this.#file.appendBytes(index);
    this.#parquet.kvMetadata = [{ key: METADATA_KEY, value: canonicalize(metadata) }];
    await this.#parquet.finish();
  }

  /** @param bytes the last row group. @param offset its file offset. */
  #crcsOf(bytes: Uint8Array, offset: number): string {
    const crcs = this.#parquet.row_groups.at(-1)!.columns.map(({ file_offset, meta_data }) => {
      const start = Number(file_offset) - offset;
      const crc = crc32(bytes.subarray(start, start + Number(meta_data!.total_compressed_size)));
      return crc.toString(16).padStart(8, "0");
    });
    return crcs.join("");
  }
}

/**
 * Other engines prune row groups by id and time, and find a record by its key. Our own lookups use
 * the segment's index.
 */
function columnOf(name: ColumnName, rows: RowGroupRows): ColumnSource {
  return {
    name,
    data: rows.valuesOf(name),
    encoding: rows.hasDictionary(name) ? "RLE_DICTIONARY" : "PLAIN",
    statistics: name === "event_id" || name === "observed_at",
    columnIndex: name === "event_id",
    bloomFilter: name === "record_key",
  };
}

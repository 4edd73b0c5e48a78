/**
 * Decodes column chunks by `parquetScan()`, once their CRC-32 and their pages have been checked.
 * Values stay bytes, since the library's text decoder drops a leading U+FEFF.
 */
import {
  type DecodedArray,
  type FileMetaData,
  type ParquetParsers,
  parquetScan,
  type SchemaElement,
  snappyUncompress,
} from "hyparquet";
import { checkChunk, checkIndices, checkLiterals, type ChunkPlace } from "./chunk_check.ts";
import { SegmentError } from "../storage/errors.ts";

/** Parsers that return values as they are stored. */
export const RAW_VALUES: Partial<ParquetParsers> = {
  stringFromBytes: (bytes) => bytes,
  uuidFromBytes: (bytes) => bytes,
  timestampFromMilliseconds: (timeMs) => timeMs,
};

export interface ScanColumn {
  element: SchemaElement;
  place: ChunkPlace;
  /** The bytes at `place`. */
  chunk: ArrayBuffer;
}

/** Decodes columns in one row group. @throws {SegmentError} */
export async function scanColumns(
  columns: readonly ScanColumn[],
  rows: number,
): Promise<DecodedArray[]> {
  let isIndexPage = false;
  const scan = await parquetScan({
    file: {
      byteLength: Math.max(...columns.map(({ place }) => place.end)),
      slice: (start) => columns.find(({ place }) => place.start === start)!.chunk,
    },
    metadata: metadataOf(columns, rows),
    utf8: false,
    useOffsetIndex: false,
    parsers: RAW_VALUES,
    compressors: {
      SNAPPY(input, outputBytes) {
        checkLiterals(input);
        const page = new Uint8Array(outputBytes);
        snappyUncompress(input, page);
        if (isIndexPage) checkIndices(page, rows);
        isIndexPage = true;
        return page;
      },
    },
  });
  const decoded: DecodedArray[] = [];
  for (const { element: { name, repetition_type }, place, chunk } of columns) {
    try {
      checkChunk(new Uint8Array(chunk), place, rows, repetition_type === "OPTIONAL");
      // In a chunk with a dictionary, the second page has the indices.
      isIndexPage = false;
      decoded.push(await scan.readColumn({ column: name, rowStart: 0, rowEnd: rows }));
    } catch (cause) {
      const { message } = cause as Error;
      const range = `[${place.start}, ${place.end})`;
      throw new SegmentError(`${name} in bytes ${range}: ${message}`, { cause });
    }
  }
  return decoded;
}

/** Describes one row group with these columns, from places that have been checked. */
function metadataOf(columns: readonly ScanColumn[], rows: number): FileMetaData {
  const elements = columns.map(({ element }) => element);
  const chunks = columns.map(({ element: { type, name }, place }) => ({
    file_offset: BigInt(place.start),
    meta_data: {
      type: type!,
      encodings: [],
      path_in_schema: [name],
      codec: "SNAPPY" as const,
      num_values: BigInt(rows),
      total_uncompressed_size: BigInt(place.uncompressedBytes),
      total_compressed_size: BigInt(place.end - place.start),
      data_page_offset: BigInt(place.dataStart),
      ...(place.dataStart !== place.start && { dictionary_page_offset: BigInt(place.start) }),
    },
  }));
  return {
    version: 2,
    schema: [{ name: "events", num_children: columns.length }, ...elements],
    num_rows: BigInt(rows),
    row_groups: [{ columns: chunks, total_byte_size: 0n, num_rows: BigInt(rows) }],
    metadata_length: 0,
  };
}

/**
 * The layout of an index (docs/format.md): the blocks of the stream tree, the pages of the first
 * table, its filter, the pages of the second table, the directories of both, and a trailer that
 * says how much there is of each. The trailer determines the size of the index.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { CorruptLogError } from "../storage/errors.ts";
import { FILTER_BLOCK_BYTES, KEY_PARTS_MAX, keyParts } from "../line/key_filter.ts";
import { ENTRY_BYTES } from "./entries.ts";

/** An index is missing, damaged, or not the expected one. The segments' rows are unaffected. */
export class IndexError extends CorruptLogError {
  override name = "IndexError";
}

/** A page: entries, four zero bytes, and the CRC-32 of both. */
export const PAGE_BYTES = 4 * 1024;
export const CRC_BYTES = 4;
export const PAGE_CRC_START: number = PAGE_BYTES - CRC_BYTES;
export const PAGE_ENTRIES: number = Math.floor(PAGE_CRC_START / ENTRY_BYTES);
/** A directory has the upper 32 bits of the first entry of each page. */
const DIRECTORY_ENTRY_BYTES = 4;

/** Versions that know only the first would misread the filter of the second. */
const MAGIC = { fine: "svindex1", coarse: "svindex2" };
const MAGIC_BYTES = 8;
const NUMBERS = [
  ...["batches", "streams", "treeBytes", "rootBytes", "height"] as const,
  ...["identities", "locations", "filterBytes", "filterCrc", "directoriesCrc"] as const,
];
const NUMBER_BYTES = 8;
const COVERAGE_BYTES = 32;
const NUMBERS_START = MAGIC_BYTES + COVERAGE_BYTES;
const TRAILER_CRC_START = NUMBERS_START + NUMBER_BYTES * NUMBERS.length;
export const TRAILER_BYTES: number = TRAILER_CRC_START + CRC_BYTES;

/** Which segments a run index covers, as in its name; zeros in a segment's own index. */
export const NO_COVERAGE: string = "0".repeat(2 * COVERAGE_BYTES);

/** `height` is the number of levels of the stream tree, and its last block is the root. */
export type Trailer = Record<typeof NUMBERS[number], number> & { coverage: string };

export function encodeTrailer(trailer: Trailer): Buffer {
  const bytes = Buffer.alloc(TRAILER_BYTES);
  bytes.write(magicOf(trailer), "latin1");
  bytes.write(trailer.coverage, MAGIC_BYTES, "hex");
  NUMBERS.forEach((name, place) => {
    bytes.writeBigUInt64LE(BigInt(trailer[name]), NUMBERS_START + NUMBER_BYTES * place);
  });
  bytes.writeUInt32LE(crc32(bytes.subarray(0, TRAILER_CRC_START)), TRAILER_CRC_START);
  return bytes;
}

/** The magic depends on whether each key sets eight bits of the filter, if there is one. */
function magicOf({ filterBytes, batches, streams }: Trailer): string {
  const isFine = filterBytes === 0 ||
    keyParts(8 * filterBytes / (batches + streams)) === KEY_PARTS_MAX;
  return isFine ? MAGIC.fine : MAGIC.coarse;
}

/** Where the parts of an index start, relative to its start. */
export interface Layout extends Trailer {
  identitiesStart: number;
  filterStart: number;
  locationsStart: number;
  directoriesStart: number;
}

export function pagesOf(entries: number): number {
  return Math.ceil(entries / PAGE_ENTRIES);
}

/** @param sizeBytes size of the index. @throws {IndexError} */
export function decodeTrailer(bytes: Buffer, sizeBytes: number): Layout {
  const isIntact = bytes.length === TRAILER_BYTES &&
    bytes.readUInt32LE(TRAILER_CRC_START) === crc32(bytes.subarray(0, TRAILER_CRC_START));
  if (!isIntact) throw new IndexError("does not match its CRC-32");
  const numbers = NUMBERS.map((name, place) =>
    [name, Number(bytes.readBigUInt64LE(NUMBERS_START + NUMBER_BYTES * place))] as const
  );
  const coverage = bytes.toString("hex", MAGIC_BYTES, NUMBERS_START);
  const trailer: Trailer = {
    ...Object.fromEntries(numbers) as Omit<Trailer, "coverage">,
    coverage,
  };
  const areExact = numbers.every(([, number]) => Number.isSafeInteger(number));
  if (!areExact || bytes.toString("latin1", 0, MAGIC_BYTES) !== magicOf(trailer)) {
    throw new IndexError("is of an unknown format");
  }
  const { treeBytes, identities, filterBytes, locations } = trailer;
  const identitiesStart = treeBytes;
  const filterStart = identitiesStart + PAGE_BYTES * pagesOf(identities);
  const locationsStart = filterStart + filterBytes;
  const directoriesStart = locationsStart + PAGE_BYTES * pagesOf(locations);
  const directoriesBytes = DIRECTORY_ENTRY_BYTES * (pagesOf(identities) + pagesOf(locations));
  const isWhole = filterBytes % FILTER_BLOCK_BYTES === 0;
  if (!isWhole || directoriesStart + directoriesBytes + TRAILER_BYTES !== sizeBytes) {
    throw new IndexError(`does not account for ${sizeBytes} bytes`);
  }
  return { ...trailer, identitiesStart, filterStart, locationsStart, directoriesStart };
}

/**
 * A segment taken apart, for attacks on its reader: column chunks, pages, and the footer as a tree.
 * `build()` puts it together with the right lengths, offsets and checksums.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import {
  BINARY,
  encodeTree,
  fieldOf,
  I64,
  parseTree,
  setField,
  structAt,
  structsIn,
  type ThriftField,
  varint,
} from "./thrift_tree.ts";

const MAGIC = Buffer.from("PAR1");
const TRAILER_BYTES = 8;
const CRC_BYTES = 4;
const CRC_DIGITS = 8;

/** Ids of fields in parquet.thrift. */
export const FILE = { schema: 2, rows: 3, rowGroups: 4, keyValues: 5 };
export const GROUP = { columns: 1, rows: 3 };
export const CHUNK = { start: 2, metadata: 3 };
export const COLUMN = {
  ...{ path: 3, codec: 4, rows: 5, rawBytes: 6, bytes: 7, dataStart: 9, dictionaryStart: 11 },
};
export const PAGE = { type: 1, rawBytes: 2, bytes: 3, dictionary: 7, data: 8 };
export const DICTIONARY = { values: 1, encoding: 2 };
export const DATA = {
  ...{ values: 1, nulls: 2, rows: 3, encoding: 4, levelsBytes: 5, repetitionBytes: 6 },
  isCompressed: 7,
};

export interface CraftedPage {
  header: ThriftField[];
  /** Everything after the header. */
  body: Buffer;
}

export interface CraftedChunk {
  name: string;
  /** The column's metadata, part of the footer's tree. */
  metadata: ThriftField[];
  /** The dictionary page, if there is one, and the data page. */
  pages: CraftedPage[];
}

export class CraftedSegment {
  readonly footer: ThriftField[];
  /** In file order. */
  readonly chunks: CraftedChunk[] = [];
  /** Bytes between the last chunk and the footer. */
  rest: Buffer;
  readonly #restStart: number;
  /** Changes made after all values in the footer have been repaired. */
  readonly lastChanges: ((metadata: Record<string, unknown>) => void)[] = [];
  /** Returns the footer to write for an encoded one. */
  changeFooter: (footer: Buffer) => Buffer = (footer) => footer;

  constructor(bytes: Buffer) {
    const footerBytes = bytes.readUInt32LE(bytes.length - TRAILER_BYTES);
    const footerStart = bytes.length - TRAILER_BYTES - footerBytes;
    this.footer = parseTree(bytes, footerStart).fields;
    let at = MAGIC.length;
    for (const { metadata } of this.#columns()) {
      const end = at + Number(fieldOf(metadata, COLUMN.bytes).value);
      const { items } = fieldOf(metadata, COLUMN.path).value as { items: Buffer[] };
      this.chunks.push({ name: String(items[0]), metadata, pages: pagesIn(bytes, at, end) });
      at = end;
    }
    this.#restStart = at;
    this.rest = Buffer.from(bytes.subarray(at, footerStart - CRC_BYTES));
  }

  get rowGroups(): ThriftField[][] {
    return structsIn(this.footer, FILE.rowGroups);
  }

  /** Returns a file in which only the manifest's hash is missing. */
  build(): Buffer {
    const chunks: Buffer[] = [];
    let at = MAGIC.length;
    [...this.#columns()].forEach(({ chunk, metadata }, number) => {
      const pages = this.chunks[number]!.pages.map(({ header, body }) =>
        Buffer.concat([encodeTree(header), body])
      );
      const bytes = Buffer.concat(pages);
      setField(chunk, CHUNK.start, I64, BigInt(at));
      setField(metadata, COLUMN.bytes, I64, BigInt(bytes.length));
      setField(metadata, COLUMN.dataStart, I64, BigInt(at + bytes.length - pages.at(-1)!.length));
      if (pages.length > 1) setField(metadata, COLUMN.dictionaryStart, I64, BigInt(at));
      chunks.push(bytes);
      at += bytes.length;
    });
    this.#repairMetadata(chunks, at - this.#restStart);
    return sealed(this.changeFooter(encodeTree(this.footer)), [...chunks, this.rest]);
  }

  *#columns(): Iterable<{ chunk: ThriftField[]; metadata: ThriftField[] }> {
    for (const rowGroup of this.rowGroups) {
      for (const chunk of structsIn(rowGroup, GROUP.columns)) {
        yield { chunk, metadata: structAt(chunk, CHUNK.metadata) };
      }
    }
  }

  #repairMetadata(chunks: Buffer[], movedBytes: number): void {
    const [entry] = structsIn(this.footer, FILE.keyValues);
    const metadata = JSON.parse(String(fieldOf(entry!, 2).value));
    const crcs = chunks.map((bytes) => crc32(bytes).toString(16).padStart(CRC_DIGITS, "0"));
    metadata.chunk_crcs = metadata.chunk_crcs.map((text: string) =>
      crcs.splice(0, text.length / CRC_DIGITS).join("")
    );
    if (metadata.index_start !== undefined) metadata.index_start += movedBytes;
    for (const change of this.lastChanges) change(metadata);
    const text = Buffer.from(canonicalize(metadata));
    // A change may have removed the entry from the footer.
    setField(entry!, 2, BINARY, text);
  }
}

/** Adds the footer with its CRC-32 to the bytes before it. */
function sealed(footer: Buffer, before: Buffer[]): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  const crc = Buffer.alloc(CRC_BYTES);
  crc.writeUInt32LE(crc32(Buffer.concat([footer, length])));
  return Buffer.concat([MAGIC, ...before, crc, footer, length, MAGIC]);
}

function pagesIn(bytes: Buffer, start: number, end: number): CraftedPage[] {
  const pages: CraftedPage[] = [];
  for (let at = start; at < end;) {
    const { fields: header, end: bodyStart } = parseTree(bytes, at);
    at = bodyStart + Number(fieldOf(header, PAGE.bytes).value);
    pages.push({ header, body: Buffer.from(bytes.subarray(bodyStart, at)) });
  }
  return pages;
}

/** Compresses bytes as Snappy literals. @param size the length that the page claims. */
export function snappyLiterals(bytes: Buffer, size: number = bytes.length): Buffer {
  const pieces = [varint(BigInt(size))];
  for (let start = 0; start < bytes.length; start += 0x10000) {
    const literal = bytes.subarray(start, start + 0x10000);
    const head = Buffer.of(61 << 2, 0, 0);
    head.writeUInt16LE(literal.length - 1, 1);
    pieces.push(head, literal);
  }
  return Buffer.concat(pieces);
}

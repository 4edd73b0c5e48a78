/** Segments made to exhaust their reader's time or memory. Each is an attack on one bound. */
import { Buffer } from "node:buffer";
import {
  CHUNK,
  COLUMN,
  type CraftedChunk,
  type CraftedPage,
  type CraftedSegment,
  DATA,
  DICTIONARY,
  FILE,
  GROUP,
  PAGE,
  snappyLiterals,
} from "../../support/crafted_segment.ts";
import {
  BINARY,
  BYTE,
  DOUBLE,
  encodeTree,
  fieldOf,
  I32,
  I64,
  LIST,
  setField,
  STRUCT,
  structAt,
  structsIn,
  type ThriftField,
  type ThriftValue,
  varint,
} from "../../support/thrift_tree.ts";

const HUGE = 2n ** 31n - 1n;
const MIB = 1024 * 1024;
/** A few bytes that `hyparquet` would decode to a billion values. */
const BILLION_RUN = Buffer.concat([varint(2n * 10n ** 9n), Buffer.alloc(4)]);

type Attack = (segment: CraftedSegment) => void;

function chunkOf({ chunks }: CraftedSegment, name: string): CraftedChunk {
  return chunks.find((chunk) => chunk.name === name)!;
}

function dataPage(segment: CraftedSegment, name: string): CraftedPage {
  return chunkOf(segment, name).pages.at(-1)!;
}

/** Returns the first chunk that has a dictionary. */
function withDictionary({ chunks }: CraftedSegment): CraftedChunk {
  return chunks.find(({ pages }) => pages.length > 1)!;
}

/** Replaces a page's values; its header says what `rawBytes` does. */
function setValues(
  page: CraftedPage,
  values: Buffer,
  levels: Buffer = Buffer.alloc(0),
): void {
  setBody(page, Buffer.concat([levels, snappyLiterals(values)]), levels.length + values.length);
}

function setBody(page: CraftedPage, body: Buffer, rawBytes: number): void {
  page.body = body;
  setField(page.header, PAGE.bytes, I32, BigInt(body.length));
  setField(page.header, PAGE.rawBytes, I32, BigInt(rawBytes));
}

/** Raises what the footer allows, so that only the other checks remain. */
function allowRawBytes({ metadata }: CraftedChunk, rawBytes: number): void {
  setField(metadata, COLUMN.rawBytes, I64, BigInt(rawBytes));
}

/** A change that nothing repairs. @param change gets the segment and the metadata in its footer. */
function late(
  change: (segment: CraftedSegment, metadata: Record<string, unknown>) => void,
): Attack {
  return (segment) => void segment.lastChanges.push((metadata) => change(segment, metadata));
}

/** A change of the first column chunk's metadata. */
function column(id: number, type: number, value: ThriftValue): Attack {
  return late(({ chunks }) => setField(chunks[0]!.metadata, id, type, value));
}

function metadata(name: string, value: unknown): Attack {
  return late((_segment, metadata) => void (metadata[name] = value));
}

/** The columns of the first row group, which can be changed. */
function columnsOf({ rowGroups }: CraftedSegment): ThriftField[][] {
  return structsIn(rowGroups[0]!, GROUP.columns);
}

function pageSize(type: number, value: ThriftValue): Attack {
  return (segment) => setField(dataPage(segment, "payload").header, PAGE.rawBytes, type, value);
}

/** Replaces the page of a column. @param rawBytes what the header says. */
function body(bytes: Buffer, rawBytes: number): Attack {
  return (segment) => {
    setBody(dataPage(segment, "payload"), bytes, rawBytes);
    allowRawBytes(chunkOf(segment, "payload"), rawBytes);
  };
}

/** Replaces the indices in a page of a column that has a dictionary. */
function indices(bytes: Buffer): Attack {
  return (segment) => {
    const chunk = withDictionary(segment);
    setValues(chunk.pages.at(-1)!, bytes);
    allowRawBytes(chunk, 22 * bytes.length + 1000);
  };
}

function levels(bytes: Buffer): Attack {
  return (segment) => {
    const target = dataPage(segment, "occurred_at");
    setValues(target, Buffer.alloc(100), bytes);
    setField(structAt(target.header, PAGE.data), DATA.levelsBytes, I32, BigInt(bytes.length));
    allowRawBytes(chunkOf(segment, "occurred_at"), bytes.length + 1000);
  };
}

function footer(change: (footer: Buffer) => Buffer): Attack {
  return (segment) => void (segment.changeFooter = change);
}

/** Puts bytes before the fields of the footer. */
function before(...pieces: Buffer[]): Attack {
  return footer((footer) => Buffer.concat([...pieces, footer]));
}

/** Makes every row refer to one large value in a dictionary. */
function repeatPayload(segment: CraftedSegment): void {
  const chunk = chunkOf(segment, "payload");
  const rows = Number(fieldOf(chunk.metadata, COLUMN.rows).value);
  const value = Buffer.alloc(4 + 10 * MIB, "1");
  value.writeUInt32LE(10 * MIB);
  const inner: ThriftField[] = [
    { id: DICTIONARY.values, type: I32, value: 1n },
    { id: DICTIONARY.encoding, type: I32, value: 0n },
  ];
  const header: ThriftField[] = [
    { id: PAGE.type, type: I32, value: 2n },
    { id: PAGE.dictionary, type: STRUCT, value: inner },
  ];
  const first: CraftedPage = { header, body: Buffer.alloc(0) };
  setValues(first, value);
  const [last] = chunk.pages;
  setField(structAt(last!.header, PAGE.data), DATA.encoding, I32, 8n);
  setValues(last!, Buffer.concat([Buffer.of(0), varint(BigInt(2 * rows))]));
  chunk.pages.unshift(first);
  allowRawBytes(chunk, value.length + 1000);
}

/** Every attack, by what it claims. */
export const ATTACKS: Record<string, Attack> = {
  "a list of 2^31 elements": before(
    encodeTree([{ id: 1, type: LIST, value: { type: I32, items: [], size: HUGE } }])
      .subarray(0, -1),
  ),
  "lists of 14 in lists of 14": before(Buffer.of(0x19), Buffer.alloc(1000, 14 << 4 | LIST)),
  "3 million empty strings": before(
    Buffer.of(0x19, 0xf0 | BINARY),
    ...[varint(3_000_000n), Buffer.alloc(3_000_000)],
  ),
  "2 million fields": before(Buffer.alloc(4_000_000, Buffer.of(0x15, 0))),
  "structures in structures": footer(() => Buffer.alloc(1_000_000, 0x1c)),
  "a footer of 5 MiB": footer((footer) => Buffer.concat([footer, Buffer.alloc(5 * MIB)])),
  "a string of 2^31 bytes": before(Buffer.of(0x18), varint(HUGE)),
  "an endless integer": footer(() => Buffer.alloc(100_000, 0xff)),
  "a field with an id of 2^32 + 2": before(Buffer.of(I32), varint(2n ** 33n + 4n), Buffer.of(0)),
  "metadata of 3.9 million brackets": (segment) => {
    segment.changeFooter = () => {
      const [entry] = structsIn(segment.footer, FILE.keyValues);
      setField(entry!, 2, BINARY, Buffer.alloc(3_900_000, "["));
      return encodeTree(segment.footer);
    };
  },
  "a chunk whose metadata is zero": late((segment) =>
    setField(columnsOf(segment)[0]!, CHUNK.metadata, I32, 0n)
  ),
  "a schema of 64-bit integers": (segment) =>
    setField(structsIn(segment.footer, FILE.schema)[0]!, 5, I64, 12n),
  "one and a half rows in a group": late(({ rowGroups }) =>
    setField(rowGroups[0]!, GROUP.rows, DOUBLE, doubled(1.5))
  ),
  "a data page between two bytes": column(COLUMN.dataStart, DOUBLE, doubled(4.5)),
  "a path that is bytes": column(COLUMN.path, BINARY, Buffer.from("x")),
  "the first column twice": late((segment) => {
    const columns = columnsOf(segment);
    columns[1] = columns[0]!;
  }),
  "a thousand columns": late((segment) => {
    const columns = columnsOf(segment);
    columns.push(...Array(1000).fill(columns[0]));
  }),
  "1,000 row groups at one place": late(({ rowGroups }, metadata) => {
    for (const list of [rowGroups, metadata.chunk_crcs as unknown[]]) {
      list.splice(1, 0, ...Array(1000).fill(list[0]));
    }
  }),
  "chunks that overlap": late(({ chunks: [first, second] }) => {
    const at = fieldOf(first!.metadata, COLUMN.dataStart).value;
    setField(second!.metadata, COLUMN.dataStart, I64, at);
  }),
  "a chunk in another file": (segment) =>
    setField(columnsOf(segment)[0]!, 1, BINARY, Buffer.from("/x")),
  "an index at byte 2^52": metadata("index_start", 2 ** 52),
  "2^52 events": metadata("events", 2 ** 52),
  "2^52 batches": metadata("batches", 2 ** 52),
  "CRCs of no row group": metadata("chunk_crcs", []),
  "CRCs of too many columns": metadata("chunk_crcs", Array(2).fill("0".repeat(8 * 10_000))),
  "a page of 4e9 bytes, as a double": pageSize(DOUBLE, doubled(4e9)),
  "a second size of 4e9, as a double": (segment) =>
    void dataPage(segment, "payload").header.push(
      { id: PAGE.rawBytes, type: DOUBLE, value: doubled(4e9) },
    ),
  "a size as one byte": pageSize(BYTE, -1n),
  "-2^31 nulls where nulls may be": (segment) => {
    const { header } = dataPage(segment, "occurred_at");
    setField(structAt(header, PAGE.data), DATA.nulls, I32, -HUGE);
  },
  "2,048 values in a small dictionary": (segment) => {
    const { header } = withDictionary(segment).pages[0]!;
    setField(structAt(header, PAGE.dictionary), DICTIONARY.values, I32, 2048n);
  },
  "a billion indices in a run": indices(Buffer.concat([Buffer.of(8), BILLION_RUN])),
  "a billion packed indices of no bits": indices(
    Buffer.concat([Buffer.of(0), varint(2n ** 30n | 1n)]),
  ),
  "indices of 255 bits": indices(Buffer.concat([Buffer.of(255), BILLION_RUN])),
  "empty runs": indices(Buffer.concat([Buffer.of(8), Buffer.alloc(100_000)])),
  "no indices": indices(Buffer.of(8)),
  "indices out of the dictionary": indices(Buffer.concat([Buffer.of(32), runOf(0x7fff_ffff)])),
  "negative indices": indices(Buffer.concat([Buffer.of(32), runOf(0xffff_ffff)])),
  "a billion levels": levels(BILLION_RUN),
  "levels of two": levels(Buffer.concat([varint(80n), Buffer.of(2)])),
  "Snappy that goes back": body(snappyBack(), 40),
  "Snappy that never ends": body(snappyLoop(), 40),
  "Snappy without a length": body(Buffer.alloc(50, 0xff), 40),
  "Snappy that says 2 GiB": body(snappyLiterals(Buffer.alloc(40), 2 ** 31 - 1), 40),
  "Snappy of more than it says": body(snappyCopies(100_000), 40),
  "Snappy of fewer than it says": body(snappyCopies(10), 400),
  "Snappy with a copy from before": body(Buffer.of(40, 0, 65, 0x9e, 0xff, 0xff), 40),
  "2^32 - 1 bytes in a payload": body(snappyLiterals(Buffer.alloc(4000, 0xff)), 4000),
  "a payload of 10 MiB in every row": repeatPayload,
};

function doubled(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
}

/** A run of enough indices for any row group of the test, each of 32 bits. */
function runOf(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return Buffer.concat([varint(80n), bytes]);
}

/** A literal whose length is negative for `hyparquet`. */
function snappyBack(): Buffer {
  const literals = Buffer.of(0, 65, 0xfc, 0xf0, 0xff, 0xff, 0xff);
  return Buffer.concat([varint(40n), literals, Buffer.alloc(50)]);
}

/** A literal of -5 bytes, from which `hyparquet` would return to its own tag. */
function snappyLoop(): Buffer {
  const literal = Buffer.of(0xfc, 0xfa, 0xff, 0xff, 0xff);
  return Buffer.concat([varint(40n), literal, Buffer.alloc(50)]);
}

/** Copies of 64 bytes, each of three bytes. */
function snappyCopies(count: number): Buffer {
  const copies = Buffer.alloc(3 * count, Buffer.of(63 << 2 | 2, 1, 0));
  return Buffer.concat([varint(40n), Buffer.of(0, 65), copies]);
}

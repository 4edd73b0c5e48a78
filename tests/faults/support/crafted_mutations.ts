/** Random changes of a segment's footer, page headers and pages. */
import type { Buffer } from "node:buffer";
import {
  COLUMN,
  type CraftedPage,
  type CraftedSegment,
  DATA,
  PAGE,
} from "../../support/crafted_segment.ts";
import {
  BYTE,
  fieldOf,
  I32,
  I64,
  setField,
  STRUCT,
  structAt,
  type ThriftField,
} from "../../support/thrift_tree.ts";
import type { SeededRandom } from "../../../tools/support/random.ts";
import { changeBytes } from "./almost_json.ts";
import { setValues, valuesIn } from "./crafted_bombs.ts";

const INTEGERS = [0n, 1n, -1n, 2n, 127n, 128n, 255n, 2048n, 2n ** 31n - 1n, -(2n ** 31n)];
INTEGERS.push(2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 62n, -(2n ** 62n));
const BYTES = [0, 1, 2, 3, 0x7f, 0x80, 0xfc, 0xff].map((byte) => [byte]);
const CHANGES_MAX = 4;

/** Changes a segment at random. Returns what was changed. */
export function mutate(segment: CraftedSegment, random: SeededRandom): string {
  const [name, change] = random.pick(Object.entries(MUTATIONS));
  for (let count = 1 + random.below(CHANGES_MAX); count > 0; count--) change(segment, random);
  return name;
}

const MUTATIONS: Record<string, (segment: CraftedSegment, random: SeededRandom) => void> = {
  "bytes of the footer": (segment, random) => {
    const before = segment.changeFooter;
    segment.changeFooter = (footer) => changeBytes(random, before(footer), BYTES);
  },
  "metadata": (segment, random) =>
    void segment.lastChanges.push((metadata) => {
      const name = random.pick(Object.keys(metadata));
      metadata[name] = random.pick([...INTEGERS.map(Number), "", [], ["0"], null, {}, [[1]]]);
    }),
  "fields of a page header": changePageHeader,
  "bytes of a page": (segment, random) => {
    const page = pageOf(segment, random);
    page.body = changeBytes(random, page.body, BYTES);
    setField(page.header, PAGE.bytes, I32, BigInt(page.body.length));
  },
  "values of a page": (segment, random) => {
    const chunk = random.pick(segment.chunks);
    const page = random.pick(chunk.pages);
    const { levels, values } = contentOf(page);
    setValues(page, changeBytes(random, values, BYTES), levels);
    setField(chunk.metadata, COLUMN.rawBytes, I64, 1_000_000n);
  },
  "levels of a page": (segment, random) => {
    const page = random.pick(segment.chunks.filter(({ name }) => name === "occurred_at")).pages[0]!;
    const { levels, values } = contentOf(page);
    const changed = changeBytes(random, levels, BYTES);
    setValues(page, values, changed);
    const data = structAt(page.header, PAGE.data);
    setField(data, DATA.levelsBytes, I32, BigInt(changed.length));
  },
};

/** Removes, repeats or changes a field of a page header or of a structure in it. */
function changePageHeader(segment: CraftedSegment, random: SeededRandom): void {
  const { header } = pageOf(segment, random);
  const inner = header.filter(({ type }) => type === STRUCT)
    .map(({ value }) => value as ThriftField[]);
  const fields = random.pick([header, ...inner]);
  if (fields.length === 0) return;
  const place = random.below(fields.length);
  const field = fields[place]!;
  const other = { id: field.id, type: random.pick([BYTE, I32, I32, I64]), value: integer(random) };
  const kind = random.below(6);
  if (kind === 0) fields.splice(place, 1);
  else if (kind === 1) fields.splice(random.below(fields.length + 1), 0, other);
  else if (kind === 2) field.id += 1 + random.below(20);
  else fields[place] = other;
}

/** Returns the levels and the decompressed values of an intact page; else its raw content. */
function contentOf(page: CraftedPage): { levels: Buffer; values: Buffer } {
  const { header, body } = page;
  const data = header.find(({ id }) => id === PAGE.data)?.value as ThriftField[] | undefined;
  const levelsBytes = data === undefined ? 0 : Number(fieldOf(data, DATA.levelsBytes).value);
  const levels = body.subarray(0, levelsBytes);
  const rawBytes = Number(fieldOf(header, PAGE.rawBytes).value) - levelsBytes;
  const values: CraftedPage = {
    header: [{ id: PAGE.rawBytes, type: I32, value: BigInt(rawBytes) }],
    body: body.subarray(levelsBytes),
  };
  return { levels, values: valuesIn(values) };
}

function pageOf(segment: CraftedSegment, random: SeededRandom): CraftedPage {
  return random.pick(random.pick(segment.chunks).pages);
}

function integer(random: SeededRandom): bigint {
  return random.chance(0.5) ? random.pick(INTEGERS) : BigInt(random.below(5000));
}

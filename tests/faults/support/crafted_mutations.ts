/** Random changes of a segment's footer, page headers and pages. */
import { Buffer } from "node:buffer";
import {
  COLUMN,
  type CraftedPage,
  type CraftedSegment,
  DATA,
  PAGE,
} from "../../support/crafted_segment.ts";
import {
  BINARY,
  DOUBLE,
  fieldOf,
  I32,
  I64,
  LIST,
  setField,
  STRUCT,
  structAt,
  type ThriftField,
  type ThriftList,
  type ThriftValue,
} from "../../support/thrift_tree.ts";
import type { SeededRandom } from "../../../tools/support/random.ts";
import { changeBytes } from "./almost_json.ts";
import { type Attack, ATTACKS, setValues, valuesIn } from "./crafted_bombs.ts";

const INTEGERS = [0n, 1n, -1n, 2n, 127n, 128n, 255n, 2048n, 2n ** 31n - 1n, -(2n ** 31n)];
INTEGERS.push(2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 62n, -(2n ** 62n));
const BYTES = [0, 1, 2, 3, 0x7f, 0x80, 0xfc, 0xff].map((byte) => [byte]);
const CHANGES_MAX = 4;

/** Changes a segment at random. Returns what was changed. */
export function mutate(segment: CraftedSegment, random: SeededRandom): string {
  const chance = random.below(100);
  if (chance < 8) {
    const name = random.pick(Object.keys(ATTACKS));
    ATTACKS[name]!(segment);
    return name;
  }
  const [name, change] = random.pick(MUTATIONS);
  for (let count = 1 + random.below(CHANGES_MAX); count > 0; count--) change(segment, random);
  return name;
}

type Change = (segment: CraftedSegment, random: SeededRandom) => void;

const MUTATIONS: [name: string, change: Change][] = [
  ["bytes of the footer", (segment, random) => {
    const before = segment.changeFooter;
    segment.changeFooter = (footer) => changeBytes(random, before(footer), BYTES);
  }],
  [
    "fields of the footer",
    (segment, random) => void segment.lastChanges.push(() => changeFields(segment.footer, random)),
  ],
  [
    "fields of a column chunk",
    (segment, random) =>
      void segment.lastChanges.push(() =>
        changeFields(random.pick(segment.chunks).metadata, random)
      ),
  ],
  ["metadata", (segment, random) =>
    void segment.lastChanges.push((metadata) => {
      const name = random.pick(Object.keys(metadata));
      metadata[name] = random.pick([...INTEGERS.map(Number), "", [], ["0"], null, {}, [[1]]]);
    })],
  [
    "fields of a page header",
    (segment, random) => changeFields(pageOf(segment, random).header, random),
  ],
  ["sizes in a page header", (segment, random) => {
    const { header } = pageOf(segment, random);
    const isData = header.some(({ id }) => id === PAGE.data);
    const inner = isData ? structAt(header, PAGE.data) : structAt(header, PAGE.dictionary);
    const [fields, ids] = random.chance(0.4)
      ? [header, [PAGE.rawBytes, PAGE.bytes]]
      : [inner, isData ? Object.values(DATA) : [1, 2]];
    setField(fields, random.pick(ids), random.pick([I32, I32, I64]), integer(random));
  }],
  ["bytes of a page", (segment, random) => {
    const page = pageOf(segment, random);
    page.body = changeBytes(random, page.body, BYTES);
    setField(page.header, PAGE.bytes, I32, BigInt(page.body.length));
  }],
  ["values of a page", (segment, random) => {
    const chunk = random.pick(segment.chunks);
    const page = random.pick(chunk.pages);
    const { levels, values } = contentOf(page);
    setValues(page, changeBytes(random, values, BYTES), levels);
    setField(chunk.metadata, COLUMN.rawBytes, I64, 1_000_000n);
  }],
  ["levels of a page", (segment, random) => {
    const page = random.pick(segment.chunks.filter(({ name }) => name === "occurred_at")).pages[0]!;
    const { levels, values } = contentOf(page);
    const changed = changeBytes(random, levels, BYTES);
    setValues(page, values, changed);
    const data = structAt(page.header, PAGE.data);
    setField(data, DATA.levelsBytes, I32, BigInt(changed.length));
  }],
];

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

/** Changes a field at any depth: its value, type, id or presence. */
function changeFields(fields: ThriftField[], random: SeededRandom): void {
  const structs = [...structsUnder(fields)].filter((struct) => struct.length > 0);
  if (structs.length === 0) return;
  const struct = random.pick(structs);
  const place = random.below(struct.length);
  const field = struct[place]!;
  const kind = random.below(7);
  if (kind === 0) struct.splice(place, 1);
  else if (kind === 1) struct.splice(random.below(struct.length + 1), 0, { ...field });
  else if (kind === 2) field.id += 1 + random.below(20);
  else if (kind === 3) Object.assign(field, valueOf(random));
  else if (kind === 4) struct.splice(place, 0, { id: field.id, ...valueOf(random) });
  else if (field.type === LIST) changeList(field.value as ThriftList, random);
  else if (typeof field.value === "bigint" && field.type > 2) field.value = integer(random);
  else if (Buffer.isBuffer(field.value) && field.type === BINARY) {
    field.value = changeBytes(random, field.value, BYTES);
  }
}

function changeList(list: ThriftList, random: SeededRandom): void {
  const kind = random.below(4);
  if (kind === 0) list.size = BigInt.asUintN(64, integer(random));
  else if (kind === 1) list.type = random.pick([1, I32, I64, BINARY, LIST, STRUCT]);
  else if (kind === 2 && list.items.length > 0) list.items.push(...list.items);
  else list.items.splice(0, 1 + random.below(3));
  // A list of another type has values that don't belong to it.
  if (kind === 1) list.items = [];
}

function valueOf(random: SeededRandom): { type: number; value: ThriftValue } {
  const type = random.pick([1, 2, I32, I64, DOUBLE, BINARY, LIST, STRUCT]);
  if (type === DOUBLE) {
    const value = Buffer.alloc(8);
    value.writeDoubleLE(random.pick([0, 0.5, -1, 1e9, 4e9, 1e300, NaN]));
    return { type, value };
  }
  if (type === BINARY) return { type, value: Buffer.alloc(random.below(40), 0x31) };
  if (type === LIST) return { type, value: { type: I32, items: [integer(random)] } };
  if (type === STRUCT) return { type, value: [{ id: 1, type: I32, value: integer(random) }] };
  return { type, value: integer(random) };
}

function integer(random: SeededRandom): bigint {
  return random.chance(0.5) ? random.pick(INTEGERS) : BigInt(random.below(5000));
}

/** Yields a structure and those in it. */
function* structsUnder(fields: ThriftField[]): Iterable<ThriftField[]> {
  yield fields;
  for (const { value } of fields) yield* structsOf(value);
}

function* structsOf(value: ThriftValue): Iterable<ThriftField[]> {
  if (Array.isArray(value)) yield* structsUnder(value);
  else if (typeof value === "object" && !Buffer.isBuffer(value)) {
    for (const item of value.items) yield* structsOf(item);
  }
}

/** The changes of one run: each attack once, then random ones. */
export function changeNumbered(
  segment: CraftedSegment,
  number: number,
  random: SeededRandom,
): string {
  const names = Object.keys(ATTACKS);
  const name = names[number];
  if (name === undefined) return mutate(segment, random);
  (ATTACKS[name] as Attack)(segment);
  return name;
}

export const ATTACK_COUNT: number = Object.keys(ATTACKS).length;

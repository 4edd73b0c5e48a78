/**
 * Spoils the JSON of a body: its structure, and its text where no value could express it. The body
 * is framed right, so that the parser of JSON is what gets to see it.
 */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";

/** Values that are no JSON, or JSON that a careless parser takes for something else. */
const NUMBERS = [
  ...["-0", "-0.0", "0.1", "1e21", "5e-324", "1e-400", "1e308", "1e309", "-1e999", "1E+2", "1e-7"],
  ...["9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993"],
  ...["100000000000000000000", "1000000000000000000000", "18446744073709551617.0"],
  ...["01", "+1", "1.", ".5", "0x10", "1e", "1e+", "--1", "NaN", "Infinity", "-Infinity", "1_000"],
];
const STRINGS = [
  ...['"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\u2028"', '"\\/"'],
  ...['"\\x41"', '"\\"', '"\\u12"', '"\t"', '"\n"', '"\0"', "'single'", '"\x7f"', '""', '" "'],
  ...['"service/x"', '"system"', '"service.source_lineage"', '"2026-02-30T00:00:00Z"', '"../.."'],
  ...['"2026-01-01T00:00:00.1234567891Z"', '"2026-01-01T00:00:00+01:00"', '"é\u{1f600}"'],
];
const OTHERS = [
  ...["", "nul", "null", "true", "True", "undefined", "{}", "[]", "[,]", "{,}", "[1,]", '{"a":1,}'],
  ...['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '{"__proto__":{"x":1}}', '{"constructor":null}'],
  ...["/* */ 1", "// 1\n1", "{a:1}", '{"a" 1}', '{"":""}', '["a" "b"]', "\ufeff1", "[1]]", "}"],
];
/** No text but bytes: UTF-8 that is overlong, cut off, a surrogate, out of range, or Latin-1. */
const BAD_UTF8 = [
  "\xff",
  "\xc0\xaf",
  "\xe2\x82",
  "\xed\xa0\x80",
  "\xf4\x90\x80\x80",
  "\xe9",
  "\x80",
];

/** Stands in a value where bytes are to stand in its text. */
const RAW = "\u0001raw\u0001";
const RAW_TEXT = JSON.stringify(RAW);

type Members = Record<string, unknown>;

/** A body with one to three faults in it, or sometimes none. */
export function mutateJson(random: SeededRandom, body: Buffer): Buffer {
  let mutated = body;
  do {
    mutated = random.chance(0.7) ? mutateValue(random, mutated) : mutateText(random, mutated);
  } while (random.chance(0.3));
  return mutated;
}

/** Changes one place of the value; a body that is no JSON any more is left alone. */
function mutateValue(random: SeededRandom, body: Buffer): Buffer {
  let root: { body: unknown };
  try {
    root = { body: JSON.parse(body.toString()) };
  } catch {
    return body;
  }
  const places = placesOf(root);
  const [holder, name] = random.pick(places);
  const container = holder as Members;
  const raw = random.pick([hostileRaw, hostileRaw, deepRaw, longRaw])(random);
  switch (random.below(9)) {
    case 0:
      if (Array.isArray(holder)) holder.splice(Number(name), 1);
      else delete container[name];
      break;
    case 1:
      if (Array.isArray(holder)) holder.push(container[name]);
      else container[random.pick(["x", "v", "__proto__ ", "events", "payload", ""])] = RAW;
      break;
    case 2:
      container[name] = [container[name]];
      break;
    case 3:
      container[name] = random.pick(places)[0];
      break;
    case 4:
      container[name] = random.pick([null, true, 0, 1, -1.5, "", "a", [], {}]);
      break;
    case 5:
      container[name] = random.text(random.pick([3, 30, 300, 2000]));
      break;
    default:
      container[name] = RAW;
  }
  let text: string;
  try {
    text = JSON.stringify(root.body) ?? "";
  } catch {
    // It contains itself.
    return body;
  }
  return withRaw(text, raw);
}

/** Every place of a value but those very deep in it, by the container that holds it. */
function placesOf(value: unknown, depthMax = 20): [holder: object, name: string][] {
  if (typeof value !== "object" || value === null || depthMax === 0) return [];
  return Object.entries(value).flatMap(([name, item]) => {
    const place: [object, string] = [value, name];
    return [place, ...placesOf(item, depthMax - 1)];
  });
}

function withRaw(text: string, raw: Buffer): Buffer {
  const at = text.indexOf(RAW_TEXT);
  if (at < 0) return Buffer.from(text);
  const after = text.slice(at + RAW_TEXT.length);
  return Buffer.concat([Buffer.from(text.slice(0, at)), raw, Buffer.from(after)]);
}

function hostileRaw(random: SeededRandom): Buffer {
  const text = random.pick(random.pick([NUMBERS, STRINGS, OTHERS]));
  return Buffer.from(text);
}

/** Nesting about what is allowed, and far beyond. */
function deepRaw(random: SeededRandom): Buffer {
  const depth = random.pick([120, 127, 128, 129, 252, 253, 256, 257, 1000, 20_000]);
  const [open, close] = random.pick([["[", "]"], ['{"a":', "}"], ['[{"b":', "}]"]] as const);
  const isClosed = random.chance(0.8);
  return Buffer.from(open.repeat(depth) + "1" + (isClosed ? close.repeat(depth) : ""));
}

/** Strings about the limits of names, and numbers of many digits. */
function longRaw(random: SeededRandom): Buffer {
  const length = random.pick([126, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 5000]);
  const unit = random.pick(["a", "é", "\u{1f600}", "\\u0041", "9", "\\\\"]);
  const text = unit.repeat(length);
  return Buffer.from(unit === "9" && random.chance(0.5) ? text : `"${text}"`);
}

function mutateText(random: SeededRandom, body: Buffer): Buffer {
  const insert = (inserted: Buffer) => {
    const at = random.below(body.length + 1);
    return Buffer.concat([body.subarray(0, at), inserted, body.subarray(at)]);
  };
  switch (random.below(8)) {
    case 0:
      return Buffer.concat([Buffer.from(random.pick(["\ufeff", " ", "\n", "\0", "1", "x"])), body]);
    case 1:
      return Buffer.concat([body, Buffer.from(random.pick([" ", "\n", "\0", "{}", ",", "}"]))]);
    case 2:
      return insert(Buffer.from(random.pick(BAD_UTF8), "latin1"));
    case 3:
      return insert(Buffer.from(random.pick(random.pick([NUMBERS, STRINGS, OTHERS]))));
    case 4:
      return repeatMember(random, body);
    case 5:
      return body.subarray(0, random.below(body.length + 1));
    case 6:
      return insert(Buffer.alloc(random.pick([1, 1000, 50_000]), random.pick([" ", "\t", "\n"])));
    default:
      return Buffer.from(random.pick(OTHERS));
  }
}

/** Says a member twice, in the same object, at times spelled otherwise. */
function repeatMember(random: SeededRandom, body: Buffer): Buffer {
  const text = body.toString("latin1");
  const members = [...text.matchAll(/"(\w+)":("[^"\\]*"|[0-9]+|null)/g)];
  if (members.length === 0) return body;
  const member = random.pick(members);
  const [whole, name, value] = member;
  const escaped = `\\u00${name!.charCodeAt(0).toString(16)}${name!.slice(1)}`;
  const repeated = random.chance(0.5) ? whole : `"${escaped}":${value}`;
  const at = member.index;
  return Buffer.from(`${text.slice(0, at)}${repeated},${text.slice(at)}`, "latin1");
}

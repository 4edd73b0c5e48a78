/** Encodings of numbers and strings around the limits of strict JSON. */
import type { SeededRandom } from "../../../tools/support/random.ts";

/** Kinds of numbers, and of tokens that a parser might mistake for one. */
const NUMBERS: readonly ((random: SeededRandom) => string)[] = [
  (random) => String(random.below(1000)),
  (random) => String(random.finiteNumber()),
  (random) => String(2n ** BigInt(random.pick([31, 32, 52, 53, 54, 63, 64, 69])) + offset(random)),
  (random) => String(-(2n ** BigInt(random.pick([53, 54, 63, 64]))) + offset(random)),
  (random) => random.pick(["", "-"]) + digits(random, 15, 8),
  (random) => random.pick(ODD_NUMBERS),
  composedNumber,
  nearOverflow,
];

export function hostileNumber(random: SeededRandom): string {
  return random.pick(NUMBERS)(random);
}

const ODD_NUMBERS = [
  ...["-0", "0", "-0.0", "0e0", "-0e-0", "1e1", "1E+1", "1e-1", "5e-324", "2e-324", "1e-400"],
  ...["9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993"],
  ...["9007199254740993.0", "9007199254740993e0", "100000000000000000000", "999999999999999999999"],
  ...["1000000000000000000000", "1e21", "123456789012345680000", "123456789012345678901"],
  ...["1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "1e308"],
  ...["-1e309", "1e309", "0e999999999", "1e-999999999", "1e99999999999999999999", "0.1e309"],
  ...["01", "-01", "+1", ".5", "1.", "1.e1", "-", "--1", "1e", "1e+", "0x1", "1_000", "1n", "-.1"],
  ...["00", "1e1.5", "1.5.5", "1ee1", "0b1", "-Infinity", "1e5-", "1-1", "\uff11", "\u0661"],
];

function offset(random: SeededRandom): bigint {
  return BigInt(random.below(9) - 4);
}

/** Between `min` and `min + more` digits, often with trailing zeros. */
function digits(random: SeededRandom, min: number, more: number): string {
  let text = String(1 + random.below(9));
  const zeros = random.chance(0.4) ? random.below(min) : 0;
  const length = min + random.below(more + 1);
  while (text.length < length - zeros) text += String(random.below(10));
  return text + "0".repeat(zeros);
}

/** A number made of random parts, a few of which the grammar does not allow. */
function composedNumber(random: SeededRandom): string {
  const sign = random.chance(0.02) ? "+" : random.pick(["", "", "-"]);
  const integer = random.chance(0.05) ? "0" + digits(random, 1, 3) : digits(random, 1, 20);
  const fraction = random.chance(0.5) ? "" : `.${random.chance(0.03) ? "" : digits(random, 1, 20)}`;
  const exponentSign = random.pick(["", "+", "-"]);
  const exponent = random.chance(0.6)
    ? ""
    : `${random.pick(["e", "E"])}${exponentSign}${random.chance(0.03) ? "" : random.below(330)}`;
  return sign + (random.chance(0.1) ? "0" : integer) + fraction + exponent;
}

/** Literals of 300 or more digits, with and without a fraction, above and below the maximum. */
function nearOverflow(random: SeededRandom): string {
  const lead = random.pick(["1", "2", ...[7, 8, 9].map((digit) => `1797693134862315${digit}`)]);
  const length = 306 + random.below(6);
  const integer = lead.padEnd(length, random.pick(["0", "9"]));
  return random.pick(["", "-"]) + integer + random.pick(["", "", ".0", ".5", "e0", "e-1", "e1"]);
}

const PARTS = [
  ...["a", "b", " ", "/", "\u007f", "\u0080", "\u00e9", "\u2028", "\u2029", "\ufeff", "\uffff"],
  ...["\u{1f600}", "\u{10ffff}", "\ue000", "<", "&"],
  ...['\\"', "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"],
  ...["\\u0000", "\\u001f", "\\u0041", "\\u00E9", "\\u2028", "\\ufeff", "\\uFFFF", "\\u005c"],
  ...["\\ud83d\\ude00", "\\uD83D\\uDE00", "\\udbff\\udfff", "\\ud7ff", "\\ue000"],
];
const FAULTY_PARTS = [
  ...["\\ud83d", "\\ude00", "\\ude00\\ud83d", "\\ud83d\\ud83d", "\\ud83d\\u0041", "\\ud83dx"],
  ...["\\ud83d\\n", "\\ud83d\u{1f600}", "\\udc00", "\\uD800\\", "\\ud83d\\\\ude00"],
  ...["\n", "\t", "\0", "\u001f", "\r", "\\a", "\\'", "\\0", "\\x41", "\\v", "\\U0041", "\\\n"],
  ...["\\u", "\\u1", "\\u12", "\\u123", "\\u123g", "\\u+123", "\\u 123", "\\u{41}", "\\", '"'],
];

/** A string in quotes. */
export function hostileString(random: SeededRandom): string {
  let inside = "";
  for (let count = random.below(5); count > 0; count--) {
    inside += random.chance(0.04)
      ? random.pick(FAULTY_PARTS)
      : random.chance(0.1)
      ? JSON.stringify(random.text(4)).slice(1, -1)
      : random.pick(PARTS);
  }
  return `"${inside}"`;
}

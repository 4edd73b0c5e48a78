/** Spoils bytes without knowing what they mean. */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";

const RANGE_BYTES_MAX = 64;
/** What a parser gives a meaning to. */
const TOKENS = [
  ...["\r\n", "\n", "\r", "\r\n\r\n", "\n\n", "\0", " ", "\t", ":", ",", ";", "=", "&", "?", "%"],
  ...["0\r\n\r\n", "HTTP/1.1", "GET / HTTP/1.1\r\n\r\n", "{", "}", "[", "]", '"', "\\", "\\u0000"],
  ...[
    "\xff",
    "\xc0\x80",
    "\xed\xa0\x80",
    "\xef\xbb\xbf",
    "-",
    "1e999",
    "null",
    "99999999999999999",
  ],
];

type Mutation = (random: SeededRandom, bytes: Buffer) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  flipBit,
  flipBit,
  replaceByte,
  replaceByte,
  insertToken,
  insertToken,
  insertRandom,
  deleteRange,
  duplicateRange,
  swapRanges,
  truncate,
];

/** Applies one to eight mutations, mostly few. */
export function mutateBytes(random: SeededRandom, bytes: Buffer): Buffer {
  let count = 1;
  while (count < 8 && random.chance(0.5)) count++;
  let mutated = Buffer.from(bytes);
  for (; count > 0; count--) mutated = random.pick(MUTATIONS)(random, mutated) as typeof mutated;
  return mutated;
}

/** Bytes of no format. */
export function randomBytes(random: SeededRandom, bytesMax: number): Buffer {
  const bytes = Buffer.alloc(1 + random.below(bytesMax));
  random.bytes(bytes);
  return bytes;
}

/** Cuts bytes into a few pieces, of which none is empty. */
export function cutIntoPieces(random: SeededRandom, bytes: Buffer, piecesMax: number): Buffer[] {
  const cuts = Array.from({ length: random.below(piecesMax) }, () => random.below(bytes.length));
  const ends = [...new Set([...cuts, bytes.length])].sort((a, b) => a - b);
  return ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end)).filter((p) => p.length > 0);
}

function flipBit(random: SeededRandom, bytes: Buffer): Buffer {
  const at = random.below(bytes.length);
  if (bytes.length > 0) bytes[at] = bytes[at]! ^ (1 << random.below(8));
  return bytes;
}

function replaceByte(random: SeededRandom, bytes: Buffer): Buffer {
  if (bytes.length > 0) bytes[random.below(bytes.length)] = random.below(256);
  return bytes;
}

function insertAt(bytes: Buffer, at: number, inserted: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at)]);
}

function insertToken(random: SeededRandom, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  return insertAt(bytes, at, Buffer.from(random.pick(TOKENS), "latin1"));
}

function insertRandom(random: SeededRandom, bytes: Buffer): Buffer {
  return insertAt(bytes, random.below(bytes.length + 1), randomBytes(random, 16));
}

function range(random: SeededRandom, bytes: Buffer): [start: number, end: number] {
  const start = random.below(bytes.length + 1);
  return [start, Math.min(bytes.length, start + 1 + random.below(RANGE_BYTES_MAX))];
}

function deleteRange(random: SeededRandom, bytes: Buffer): Buffer {
  const [start, end] = range(random, bytes);
  return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]);
}

function duplicateRange(random: SeededRandom, bytes: Buffer): Buffer {
  const [start, end] = range(random, bytes);
  return insertAt(bytes, random.below(bytes.length + 1), bytes.subarray(start, end));
}

/** Two ranges that do not overlap change places. */
function swapRanges(random: SeededRandom, bytes: Buffer): Buffer {
  const ends = Array.from({ length: 4 }, () => random.below(bytes.length + 1));
  const [a, b, c, d] = ends.sort((x, y) => x - y) as [number, number, number, number];
  const parts = [bytes.subarray(0, a), bytes.subarray(c, d), bytes.subarray(b, c)];
  return Buffer.concat([...parts, bytes.subarray(a, b), bytes.subarray(d)]);
}

function truncate(random: SeededRandom, bytes: Buffer): Buffer {
  return bytes.subarray(0, random.below(bytes.length + 1));
}

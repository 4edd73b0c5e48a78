/**
 * XXH64 with seed 0 (Cyan4973/xxHash, doc/xxhash_spec.md), the hash of Parquet's Bloom filters. It
 * uses BigInt: 32-bit halves would be three times as fast, but sealing spends a few percent here.
 */
const P1 = 0x9e3779b185ebca87n;
const P2 = 0xc2b2ae3d27d4eb4fn;
const P3 = 0x165667b19e3779f9n;
const P4 = 0x85ebca77c2b2ae63n;
const P5 = 0x27d4eb2f165667c5n;

const STRIPE_BYTES = 32;
const LANE_BYTES = 8;
const LANE_ROTATIONS = [1n, 7n, 12n, 18n];
const LITTLE_ENDIAN = true;

/** The two halves of a hash, without sign. */
export interface Hash64 {
  high: number;
  low: number;
}

export function xxhash64(bytes: Uint8Array): Hash64 {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const stripesEnd = bytes.length - bytes.length % STRIPE_BYTES;
  let hash = add(stripesEnd > 0 ? hashStripes(view, stripesEnd) : P5, BigInt(bytes.length));
  let at = stripesEnd;
  for (; at + LANE_BYTES <= bytes.length; at += LANE_BYTES) {
    hash = hash ^ round(0n, view.getBigUint64(at, LITTLE_ENDIAN));
    hash = add(multiply(rotate(hash, 27n), P1), P4);
  }
  if (at + 4 <= bytes.length) {
    hash = hash ^ multiply(BigInt(view.getUint32(at, LITTLE_ENDIAN)), P1);
    hash = add(multiply(rotate(hash, 23n), P2), P3);
    at += 4;
  }
  for (; at < bytes.length; at++) {
    hash = hash ^ multiply(BigInt(bytes[at]!), P5);
    hash = multiply(rotate(hash, 11n), P1);
  }
  hash = multiply(hash ^ hash >> 33n, P2);
  hash = multiply(hash ^ hash >> 29n, P3);
  hash = hash ^ hash >> 32n;
  return { high: Number(hash >> 32n), low: Number(BigInt.asUintN(32, hash)) };
}

/** Four lanes take turns over the stripes. */
function hashStripes(view: DataView, end: number): bigint {
  const lanes = [add(P1, P2), P2, 0n, BigInt.asUintN(64, -P1)];
  for (let at = 0; at < end; at += LANE_BYTES) {
    const lane = at / LANE_BYTES % lanes.length;
    lanes[lane] = round(lanes[lane]!, view.getBigUint64(at, LITTLE_ENDIAN));
  }
  let hash = 0n;
  lanes.forEach((lane, number) => hash = add(hash, rotate(lane, LANE_ROTATIONS[number]!)));
  for (const lane of lanes) hash = add(multiply(hash ^ round(0n, lane), P1), P4);
  return hash;
}

/** Mixes eight bytes into a lane. */
function round(lane: bigint, input: bigint): bigint {
  return multiply(rotate(add(lane, multiply(input, P2)), 31n), P1);
}

function add(a: bigint, b: bigint): bigint {
  return BigInt.asUintN(64, a + b);
}

function multiply(a: bigint, b: bigint): bigint {
  return BigInt.asUintN(64, a * b);
}

/** To the left, by 1 to 63 bits. */
function rotate(value: bigint, bits: bigint): bigint {
  return BigInt.asUintN(64, value << bits | value >> 64n - bits);
}

/**
 * XXH64 with seed 0 (Cyan4973/xxHash, doc/xxhash_spec.md), the hash of Parquet's Bloom filters, on
 * halves of 32 bits: a sixth of the time that it takes with BigInt, which sealing and `verify
 * --chain` spend on every `record_key`.
 */

/** Primes, each as its high and low half. */
const P1_HIGH = 0x9e3779b1 | 0;
const P1_LOW = 0x85ebca87 | 0;
const P2_HIGH = 0xc2b2ae3d | 0;
const P2_LOW = 0x27d4eb4f | 0;
const P3_HIGH = 0x165667b1 | 0;
const P3_LOW = 0x9e3779f9 | 0;
const P4_HIGH = 0x85ebca77 | 0;
const P4_LOW = 0xc2b2ae63 | 0;
const P5_HIGH = 0x27d4eb2f | 0;
const P5_LOW = 0x165667c5 | 0;

const STRIPE_BYTES = 32;
const LANE_BYTES = 8;

/** The value at work: what every step below takes and leaves. */
let high = 0;
let low = 0;

/** The two halves of a hash, without sign. */
export interface Hash64 {
  high: number;
  low: number;
}

export function xxhash64(bytes: Uint8Array): Hash64 {
  let at = 0;
  if (bytes.length >= STRIPE_BYTES) at = hashStripes(bytes);
  else set(P5_HIGH, P5_LOW);
  add(0, bytes.length);
  for (; at + LANE_BYTES <= bytes.length; at += LANE_BYTES) {
    const hashHigh = high;
    const hashLow = low;
    set(0, 0);
    round(word(bytes, at + 4), word(bytes, at));
    set(high ^ hashHigh, low ^ hashLow);
    rotate(27);
    multiply(P1_HIGH, P1_LOW);
    add(P4_HIGH, P4_LOW);
  }
  if (at + 4 <= bytes.length) {
    mix(word(bytes, at), P1_HIGH, P1_LOW);
    rotate(23);
    multiply(P2_HIGH, P2_LOW);
    add(P3_HIGH, P3_LOW);
    at += 4;
  }
  for (; at < bytes.length; at++) {
    mix(bytes[at]!, P5_HIGH, P5_LOW);
    rotate(11);
    multiply(P1_HIGH, P1_LOW);
  }
  return avalanche();
}

/** Four lanes take turns over the stripes; returns where the last stripe ends. */
function hashStripes(bytes: Uint8Array): number {
  const lanes = new Int32Array(8);
  set(P1_HIGH, P1_LOW);
  add(P2_HIGH, P2_LOW);
  lanes.set([high, low, P2_HIGH, P2_LOW, 0, 0]);
  set(0, 0);
  // 0 - P1
  add(~P1_HIGH, ~P1_LOW);
  add(0, 1);
  lanes.set([high, low], 6);
  let at = 0;
  for (; at + STRIPE_BYTES <= bytes.length; at += STRIPE_BYTES) {
    for (let lane = 0; lane < 8; lane += 2) {
      set(lanes[lane]!, lanes[lane + 1]!);
      round(word(bytes, at + lane * 4 + 4), word(bytes, at + lane * 4));
      lanes[lane] = high;
      lanes[lane + 1] = low;
    }
  }
  mergeLanes(lanes);
  return at;
}

const LANE_ROTATIONS = [1, 7, 12, 18];

function mergeLanes(lanes: Int32Array): void {
  let sumHigh = 0;
  let sumLow = 0;
  LANE_ROTATIONS.forEach((bits, lane) => {
    set(lanes[2 * lane]!, lanes[2 * lane + 1]!);
    rotate(bits);
    add(sumHigh, sumLow);
    sumHigh = high;
    sumLow = low;
  });
  for (let lane = 0; lane < 8; lane += 2) {
    set(0, 0);
    round(lanes[lane]!, lanes[lane + 1]!);
    set(high ^ sumHigh, low ^ sumLow);
    multiply(P1_HIGH, P1_LOW);
    add(P4_HIGH, P4_LOW);
    sumHigh = high;
    sumLow = low;
  }
}

function avalanche(): Hash64 {
  set(high, low ^ high >>> 1);
  multiply(P2_HIGH, P2_LOW);
  set(high ^ high >>> 29, low ^ (low >>> 29 | high << 3));
  multiply(P3_HIGH, P3_LOW);
  return { high: high >>> 0, low: (low ^ high) >>> 0 };
}

/** One lane takes in eight bytes. */
function round(inputHigh: number, inputLow: number): void {
  const laneHigh = high;
  const laneLow = low;
  set(inputHigh, inputLow);
  multiply(P2_HIGH, P2_LOW);
  add(laneHigh, laneLow);
  rotate(31);
  multiply(P1_HIGH, P1_LOW);
}

/** Takes the product of a small input and a prime into the hash. */
function mix(input: number, primeHigh: number, primeLow: number): void {
  const hashHigh = high;
  const hashLow = low;
  set(0, input);
  multiply(primeHigh, primeLow);
  set(high ^ hashHigh, low ^ hashLow);
}

function set(newHigh: number, newLow: number): void {
  high = newHigh | 0;
  low = newLow | 0;
}

function add(otherHigh: number, otherLow: number): void {
  const sum = low + otherLow | 0;
  const carry = sum >>> 0 < low >>> 0 ? 1 : 0;
  high = high + otherHigh + carry | 0;
  low = sum;
}

/** Modulo 2^64, by products of 16 bits, none of which overflows 32 bits with its carry. */
function multiply(otherHigh: number, otherLow: number): void {
  const a0 = low & 0xffff;
  const a1 = low >>> 16;
  const b0 = otherLow & 0xffff;
  const b1 = otherLow >>> 16;
  const middle = Math.imul(a1, b0) + (Math.imul(a0, b0) >>> 16) | 0;
  const middle2 = Math.imul(a0, b1) + (middle & 0xffff) | 0;
  const carry = Math.imul(a1, b1) + (middle >>> 16) + (middle2 >>> 16) | 0;
  high = carry + Math.imul(high, otherLow) + Math.imul(low, otherHigh) | 0;
  low = Math.imul(low, otherLow);
}

/** To the left, by 1 to 31 bits. */
function rotate(bits: number): void {
  const rotated = high << bits | low >>> 32 - bits;
  low = low << bits | high >>> 32 - bits;
  high = rotated;
}

/** Four bytes as an integer, the lowest first. */
function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 | bytes[at + 3]! << 24;
}

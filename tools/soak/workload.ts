/**
 * Batches of many shapes. A batch's contents depend only on the seed, source and batch id, so the
 * same bytes can be rebuilt for a retry.
 */
import { createHash } from "node:crypto";
import type { Batch } from "../../src/client/event_log_client.ts";
import type { SubmittedEvent } from "../../src/event/types.ts";
import { type Random, randomInteger, randomItem, seededRandom } from "../support/random.ts";

/** The shape of a batch, which is part of the batch id. */
export type Shape = "single" | "small" | "bulk" | "big" | "unicode" | "guarded";

/** A stream that only guarded batches use, so that their writer knows its frontier. */
export const GUARDED_STREAM = "guarded";
/** The streams for other batches. */
export const STREAMS = ["orders", "customers", "s.0", "_"];
/** The kinds of all events. */
export const KINDS = ["upserted", "deleted", "größer"];

const BULK_EVENTS_MAX = 1000;
const BIG_PAYLOAD_CHARS_MAX = 4 * 1024 * 1024;
const DEEPEST = 128;

/** Valid values at the limits of the rules. */
const ODD_VALUES: readonly unknown[] = [
  null,
  "",
  "\u0000\u001f\u007f",
  "e\u0301 is not é",
  "😀\u2028\u2029\ufeff",
  '\\"\\u0041',
  "\ud7ff\ue000\uffff",
  -0,
  1e20,
  1e21,
  123456789012345680000,
  5e-324,
  0.1,
  [],
  {},
  nested(DEEPEST),
  JSON.parse('{"__proto__":1,"constructor":{"":[]},"\\ud83d\\ude00":0,"\\ufb33":1}'),
];

function nested(depth: number): unknown {
  let value: unknown = "core";
  for (let level = 0; level < depth - 1; level++) value = level % 2 === 0 ? [value] : { value };
  return value;
}

/** Returns a separate random number generator for each name. */
export function randomOf(seed: number, name: string): Random {
  return seededRandom(createHash("sha256").update(`${seed} ${name}`).digest().readInt32LE());
}

/** Returns the id of a writer's batch with this number. */
export function batchIdOf(number: number, shape: Shape): string {
  return `${number}-${shape}`;
}

/** Rebuilds the batch with an id from `batchIdOf()`. */
export function makeBatch(seed: number, source: string, batchId: string): Batch {
  const random = randomOf(seed, `${source} ${batchId}`);
  const shape = batchId.slice(batchId.indexOf("-") + 1) as Shape;
  const length = lengthOf(shape, random);
  const events = Array.from({ length }, (_, place) => makeEvent(random, shape, batchId, place));
  return { source, batchId, events };
}

function lengthOf(shape: Shape, random: Random): number {
  if (shape === "single" || shape === "big") return 1;
  return randomInteger(random, 1, shape === "bulk" ? BULK_EVENTS_MAX : 20);
}

function makeEvent(random: Random, shape: Shape, batchId: string, place: number): SubmittedEvent {
  const isOdd = shape === "unicode";
  const event: SubmittedEvent = {
    stream: shape === "guarded" ? GUARDED_STREAM : randomItem(random, STREAMS),
    record_key: recordKeyOf(batchId, place),
    kind: randomItem(random, KINDS),
    payload: isOdd ? oddPayload(random) : plainPayload(random, shape, place),
  };
  if (random() < 0.3) event.occurred_at = occurredAt(random);
  return event;
}

/** Returns the record key of an event, which is unique within its source. */
export function recordKeyOf(batchId: string, place: number): string {
  return batchId.endsWith("unicode") ? `${batchId}/\u0001"é😀/${place}` : `${batchId}/${place}`;
}

function plainPayload(random: Random, shape: Shape, number: number): unknown {
  if (shape === "big") return { number, text: someText(random, BIG_PAYLOAD_CHARS_MAX) };
  const text = someText(random, random() < 0.02 ? 20_000 : 500);
  return { number, amount: random() * 1000, flags: [true, null], text };
}

function oddPayload(random: Random): unknown {
  const odd = randomItem(random, ODD_VALUES);
  if (random() < 0.5) return odd;
  // One more container would exceed the depth limit.
  if (Array.isArray(odd) || typeof odd === "object") return odd;
  return { z: odd, "ä": [odd, randomItem(random, ["a", "\t", "\u20ac"])], a: random() };
}

function occurredAt(random: Random): string {
  const time = new Date(randomInteger(random, 0, 4e9) * 1000).toISOString().slice(0, 19);
  return `${time}${randomItem(random, ["", ".5", ".123456789", ".000"])}Z`;
}

/** A string that compresses about as well as typical records. */
const SAMPLE_TEXT = makeSampleText(64 * 1024);

function makeSampleText(chars: number): string {
  const random = seededRandom(1);
  let text = "";
  while (text.length < chars) text += `${random().toString(36).slice(2, 6)} the same again, `;
  return text;
}

function someText(random: Random, charsMax: number): string {
  const chars = randomInteger(random, 0, charsMax);
  const start = randomInteger(random, 0, SAMPLE_TEXT.length - 1);
  const repeats = Math.ceil((start + chars) / SAMPLE_TEXT.length);
  return SAMPLE_TEXT.repeat(repeats).slice(start, start + chars);
}

/** Actions of a writer, and their relative frequencies. */
const FREQUENCIES = {
  single: 60,
  small: 40,
  bulk: 12,
  big: 2,
  unicode: 15,
  guarded: 15,
  misguarded: 5,
  again: 15,
  twin: 8,
  conflict: 8,
  abort: 10,
  succeed: 1,
};
export type Step = keyof typeof FREQUENCIES;

/** All actions, each repeated in proportion to its frequency. */
export const STEPS: readonly Step[] = Object.entries(FREQUENCIES).flatMap(([step, count]) =>
  new Array(count).fill(step)
);

/** Excludes bulk appends, which take seconds in an emulated machine. */
export const LIGHT_STEPS: readonly Step[] = STEPS.filter((step) => step !== "bulk");

/**
 * Compares the reader of batches with one that builds their values, and with the search for faults,
 * which must find one in exactly what the reader does not accept. SEED chooses the bodies.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { ApiError } from "../../src/event/api_error.ts";
import { prepareBatch, readBatch } from "../../src/event/batch_reader.ts";
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import { type JsonObject, parseJson } from "../../src/event/json/strict_json.ts";
import type { PreparedBatch } from "../../src/event/types.ts";
import { encodeBatch } from "../support/encode_batch.ts";
import { submittedEvents } from "../support/prepared.ts";
import { mutate, randomValue } from "./support/random_json.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";

const BODIES = 4000;

const EVENT = '"stream":"s","record_key":"k","kind":"upserted"';

function batchOf(payload: string, more = ""): Buffer {
  return Buffer.from(
    `{"source":"a","batch_id":"b","events":[{${EVENT},"payload":${payload}}${more}]}`,
  );
}

function payloadOf(payload: string): string | null {
  const batch = readBatch(batchOf(payload));
  return batch === null ? null : submittedEvents(batch)[0]!.payload;
}

const PARTS = ["0", "1", "120", "00", "5", "123456789", "9007199254740993", "1".repeat(22)];

test(`readBatch() formats numbers as ECMAScript does (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let number = 0; number < 5000; number++) {
    const fraction = random.pick(["", `.${random.pick(PARTS)}`]);
    const exponent = random.pick(["", "e", "E+", "e-"]);
    const power = exponent === "" ? "" : random.below(330);
    const literal = `${random.pick(["", "-"])}${random.pick(PARTS)}${fraction}${exponent}${power}`;
    const payload = payloadOf(literal);
    if (payload === null) assert.throws(() => prepareBatch(batchOf(literal)), ApiError, literal);
    else assert.equal(payload, JSON.stringify(JSON.parse(literal)), literal);
  }
});

test(`readBatch() sorts many escaped and plain names by UTF-16 (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const units = ["\n", '"', "\\", "\u0001", "a", "b", "é", "\uffff", "😀", "n", "u"];
  const names = new Set(Array.from({ length: 3000 }, () => {
    return Array.from({ length: random.below(8) }, () => random.pick(units)).join("");
  }));
  const members = [...names].map((name) => `${JSON.stringify(name)}:1`);
  const sorted = [...names].sort().map((name) => `${JSON.stringify(name)}:1`);
  assert.equal(payloadOf(`{${members}}`), `{${sorted}}`);
  assert.equal(payloadOf(`{${members},"\\u0061":1,"a":2}`), null, "a name appears twice");
});

test("prepareBatch() finds the same beside a large payload as beside a small one", () => {
  const large = `["é","${"x".repeat(100_000)}"]`;
  const faultOf = (payload: string, more: string): ApiError => {
    try {
      prepareBatch(batchOf(payload, more));
    } catch (error) {
      if (error instanceof ApiError) return error;
    }
    throw new Error(`accepted ${more}`);
  };
  assert.deepEqual(faultOf(large, ",{}").context, faultOf("1", ",{}").context);
  const byteOf = ({ message }: ApiError) => Number(/ at byte (\d+)/.exec(message)![1]);
  assert.equal(
    byteOf(faultOf(large, ",]")) - byteOf(faultOf("1", ",]")),
    Buffer.byteLength(large) - 1,
    "the byte offset of a fault behind the payload",
  );
  const odd = `,{${EVENT},"\\u0070ayload":${large}}`;
  const batch = prepareBatch(batchOf(large, odd));
  const payloads = submittedEvents(batch).map(({ payload }) => payload);
  assert.deepEqual(payloads, [large, large]);
});

/** A batch with every member. */
const COMPLETE =
  '{"v":1,"source":"a","batch_id":"b","events":[{"occurred_at":"2026-01-02T03:04:05Z",' +
  `${EVENT},"payload":1}],"stream_precondition":{"stream":"s","expected_frontier":null}}`;

function assertRefused(body: Buffer): void {
  assert.equal(readBatch(body), null, body.toString());
  assert.throws(() => prepareBatch(body), ApiError, body.toString());
}

test("readBatch() refuses a body without its end, and does not read what another one left", () => {
  for (let size = 0; size < COMPLETE.length; size++) {
    assert.notEqual(readBatch(Buffer.from(COMPLETE)), null);
    assertRefused(Buffer.from(COMPLETE.slice(0, size)));
  }
});

test("readBatch() refuses a batch in which any member occurs twice", () => {
  const members = [...COMPLETE.matchAll(/(?=("\w+":("\w[^"]*"|\d|null|\[.*?\]|\{.*?\})))/g)];
  assert.equal(members.length, 12);
  for (const { 1: member, index } of members) {
    assertRefused(Buffer.from(`${COMPLETE.slice(0, index)}${member},${COMPLETE.slice(index)}`));
  }
});

test(`readBatch() accepts every valid batch and encodes its values (seed ${SEED})`, () => {
  const random = new SeededRandom();
  let taken = 0;
  for (let number = 0; number < BODIES; number++) {
    const body = randomBody(random);
    const batch = readBatch(body);
    const where = `body ${number} of seed ${SEED}: ${body.toString("latin1")}`;
    if (batch === null) assert.throws(() => prepareBatch(body), ApiError, where);
    else {
      taken += 1;
      const precondition = preconditionOf(parseJson(body) as JsonObject);
      assert.deepEqual(batch, { ...encoded(parseJson(body) as JsonObject), precondition }, where);
    }
  }
  assert.ok(taken > BODIES / 8 && taken < BODIES, `${taken} of ${BODIES} bodies were accepted`);
});

function encoded({ source, batch_id, events }: JsonObject): PreparedBatch {
  const prepared = (events as JsonObject[]).map((event) => ({
    stream: event.stream as string,
    recordKey: event.record_key as string,
    kind: event.kind as string,
    occurredAt: event.occurred_at as string | undefined,
    payload: canonicalize(event.payload),
  }));
  return encodeBatch(source as string, batch_id as string, prepared);
}

function preconditionOf({ stream_precondition }: JsonObject) {
  if (stream_precondition === undefined) return undefined;
  const { stream, expected_frontier: expectedFrontier } = stream_precondition as JsonObject;
  return { stream, expectedFrontier };
}

function randomBody(random: SeededRandom): Buffer {
  const events = Array.from({ length: 1 + random.below(3) }, () => randomEvent(random));
  const members = shuffled(random, [
    `"source":"${random.chance(0.1) ? random.pick(["A", "system"]) : random.pick(["a", "b.c"])}"`,
    `"batch_id":${randomName(random)}`,
    `"events":[${events.join()}]`,
    ...(random.chance(0.3) ? [`"stream_precondition":${randomPrecondition(random)}`] : []),
    ...(random.chance(0.2) ? [`"v":${random.pick(["1", "1.0", "2"])}`] : []),
  ]);
  const text = `{${members.join(random.pick([",", " ,\n"]))}}`;
  return Buffer.from(random.chance(0.3) ? mutate(random, text) : text);
}

function randomPrecondition(random: SeededRandom): string {
  const id = '"019b76da-a800-7001-8203-040506070809"';
  const members = shuffled(random, [
    `"stream":"${random.pick(["s", "s", "s.t"])}"`,
    `"expected_frontier":${random.pick(["null", id, id, '"x"', "1"])}`,
  ]);
  return `{${members.join()}}`;
}

function randomEvent(random: SeededRandom): string {
  const members = shuffled(random, [
    `"stream":"${random.pick(["s", "s.t", "0"])}"`,
    `"record_key":${randomName(random)}`,
    `"${random.pick(["kind", "k\\u0069nd"])}":${randomName(random)}`,
    ...(random.chance(0.5) ? ['"occurred_at":"2026-01-02T03:04:05.5Z"'] : []),
    `"payload":${JSON.stringify(randomValue(random, 3))}`,
  ]);
  return `{${members.join()}}`;
}

/** A random name. A few contain an escape. */
function randomName(random: SeededRandom): string {
  return random.chance(0.2) ? JSON.stringify(random.text(10)) : `"${random.pick(NAMES)}"`;
}

const NAMES = ["b", "upserted", "é€", "😀", "a b/c", "\u007f", "k".repeat(100)];

function shuffled<T>(random: SeededRandom, items: T[]): T[] {
  return items.map((item) => ({ item, key: random.below(1000) })).sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}

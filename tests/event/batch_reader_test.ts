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

function batchOf(payload: string): Buffer {
  return Buffer.from(`{"source":"a","batch_id":"b","events":[{${EVENT},"payload":${payload}}]}`);
}

function payloadOf(body: Buffer): string | null {
  const batch = readBatch(body);
  return batch === null ? null : submittedEvents(batch)[0]!.payload;
}

const TAKEN: [payload: string, canonical: string][] = [
  ["null", "null"],
  [" [ true , false ]\n", "[true,false]"],
  ['{"b":1,"a":{"d":[],"c":{}}}', '{"a":{"c":{},"d":[]},"b":1}'],
  ['{"é":1,"z":2,"\uffff":3,"":4}', '{"":4,"z":2,"é":1,"\uffff":3}'],
  ['{"\uffff":1,"😀":2,"\ue000":3,"\ud7ff":4}', '{"\ud7ff":4,"😀":2,"\ue000":3,"\uffff":1}'],
  ['{"aa":1,"a":2,"ab":3}', '{"a":2,"aa":1,"ab":3}'],
  ['"\\u0041\\n\\/\u007f"', '"A\\n/\u007f"'],
  ['"\\ud83d\\ude00"', '"😀"'],
  ["-0", "0"],
  ["-1", "-1"],
  ["1249.5", "1249.5"],
  ["0.5", "0.5"],
  ["1.50", "1.5"],
  ["0.0000001", "1e-7"],
  ["123456789012345", "123456789012345"],
  ["9007199254740992", "9007199254740992"],
  ["1e2", "100"],
  ["18446744073709551617.0", "18446744073709552000"],
];
for (const [payload, canonical] of TAKEN) {
  test(`readBatch() turns the payload ${JSON.stringify(payload)} into ${canonical}`, () => {
    assert.equal(payloadOf(batchOf(payload)), canonical);
  });
}

const PARTS = ["0", "1", "120", "00", "5", "123456789", "9007199254740993", "1".repeat(22)];

test(`readBatch() formats numbers as ECMAScript does (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const literals = Array.from({ length: 5000 }, () => {
    const fraction = random.below(2) === 0 ? "" : `.${random.pick(PARTS)}`;
    const exponent = random.below(2) === 0
      ? ""
      : `${random.pick(["e", "E+", "e-"])}${random.below(330)}`;
    return `${random.pick(["", "-"])}${random.pick(PARTS)}${fraction}${exponent}`;
  });
  for (const literal of literals) {
    const payload = payloadOf(batchOf(literal));
    if (payload !== null) assert.equal(payload, JSON.stringify(JSON.parse(literal)), literal);
    else {
      const prepare = () => prepareBatch(batchOf(literal));
      assert.throws(prepare, /number|binary64|not valid JSON/, literal);
    }
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
  assert.equal(payloadOf(batchOf(`{${members}}`)), `{${sorted}}`);
  assert.equal(payloadOf(batchOf(`{${members},"\\u0061":1,"a":2}`)), null, "a name appears twice");
});

test("prepareBatch() finds the same beside a large payload as beside a small one", () => {
  const large = `["é","${"x".repeat(100_000)}"]`;
  const bodyOf = (payload: string, more: string) =>
    Buffer.from(
      `{"source":"a","batch_id":"b","events":[{${EVENT},"payload":${payload}}${more}]}`,
    );
  const faultOf = (payload: string, more: string): ApiError => {
    try {
      prepareBatch(bodyOf(payload, more));
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
  const batch = prepareBatch(bodyOf(large, odd));
  const payloads = submittedEvents(batch).map(({ payload }) => payload);
  assert.deepEqual(payloads, [large, large]);
});

const LEFT: [what: string, body: Buffer][] = [
  ["malformed UTF-8", Buffer.concat([batchOf('"').subarray(0, -3), Buffer.from([0xff])])],
  ["a duplicate name", batchOf('{"a":1,"b":2,"a":3}')],
  ["an unpaired surrogate", batchOf('"\\ud83d"')],
  ["a control character", batchOf('"\u0001"')],
  ["an unterminated string", batchOf('"abc')],
  ["an escape at the end", batchOf('"abc\\')],
  ["a number that overflows", batchOf("1e309")],
  ["an inexact integer", batchOf("9007199254740993")],
  ["a number with a leading zero", batchOf("01")],
  ["a number without a fraction", batchOf("1.")],
  ["a sign alone", batchOf("-")],
  ["a truncated literal", batchOf("tru")],
  ["a trailing comma", batchOf("[1,]")],
  ["no payload", Buffer.from(`{"source":"a","batch_id":"b","events":[{${EVENT}}]}`)],
  ["129 containers", batchOf("[".repeat(129) + "]".repeat(129))],
  ["bytes after the batch", Buffer.concat([batchOf("1"), Buffer.from("1")])],
  ["a NUL after the batch", Buffer.concat([batchOf("1"), Buffer.from("\0")])],
  ["nothing", Buffer.from("")],
  ["a blank", Buffer.from(" ")],
];
for (const [what, body] of LEFT) {
  test(`readBatch() refuses ${what}`, () => {
    // Reads a longer body first. What it leaves in the buffer must not be read again.
    assert.notEqual(readBatch(batchOf(`"${"x".repeat(300)}"`)), null);
    assert.equal(readBatch(body), null);
    assert.throws(() => prepareBatch(body), ApiError);
  });
}

const CONDITION = '"stream_precondition":{"stream":"s","expected_frontier":null}';

const MEMBERS: [member: string, faulty: string[]][] = [
  ['"source":"a"', ['"source":"A"', '"source":"system"', '"source":""', '"source":1']],
  ['"batch_id":"b"', ['"batch_id":"service/b"', '"batch_id":""', '"batch_id":"b","batch_id":"c"']],
  ['"stream":"s"', ['"stream":"-"', '"stream":"s","x":1']],
  ['"record_key":"k"', ['"record_key":""', `"record_key":"${"k".repeat(1025)}"`]],
  ['"kind":"upserted"', ['"kind":""', `"kind":"${"é".repeat(65)}"`, '"kind":"a","kind":"b"']],
  ['"payload":1', ['"payload":1,"occurred_at":"2026-02-30T00:00:00Z"', '"payload":1,"payload":1']],
  ['"source"', [
    ...["null", "{}", '{"stream":"s"}', '{"expected_frontier":null}', '{"expected_frontier":true}']
      .map((value) => `"stream_precondition":${value},"source"`),
    ...['"x"', "true", "nul", '"019B76DA-a800-7001-8203-040506070809"', 'null,"x":1'].map((value) =>
      `"stream_precondition":{"stream":"s","expected_frontier":${value}},"source"`
    ),
    '"stream_precondition":{"stream":"t","expected_frontier":null},"source"',
    '"stream_precondition":{"stream":"s","stream":"s","expected_frontier":null},"source"',
    `${CONDITION},${CONDITION},"source"`,
  ]],
  ['{"source', ['{"v":2,"source', '{"v":1,"v":1,"source', '{"v":10,"source', '{"x":1,"source']],
  ['[{"stream"', ['[],"events":[{"stream"', '[{},{"stream"', '[1,{"stream"']],
];
for (const [member, faulty] of MEMBERS) {
  for (const fault of faulty) {
    test(`readBatch() refuses ${fault.slice(0, 60)}`, () => {
      const body = batchOf("1").toString().replace(member, fault);
      assert.equal(readBatch(Buffer.from(body)), null);
      assert.throws(() => prepareBatch(Buffer.from(body)), ApiError);
    });
  }
}

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

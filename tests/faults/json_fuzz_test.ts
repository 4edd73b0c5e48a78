/**
 * Compares the JSON parser with an oracle (the built-in parser plus independent rules) on nearly
 * valid JSON. Both accept the same documents, with the same value and canonical form. JSON_CASES
 * sets the number of documents, and SEED chooses them.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import process from "node:process";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { ApiError } from "../../src/event/api_error.ts";
import { prepareBatch } from "../../src/event/batch_reader.ts";
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import { JsonError, parseJson, parseJsonText } from "../../src/event/json/strict_json.ts";
import { JSON_DEPTH_MAX, PAYLOAD_DEPTH_MAX } from "../../src/limits.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";
import { submittedEvents } from "../support/prepared.ts";
import { almostJson } from "./support/almost_json.ts";
import { judge, type Verdict } from "./support/json_oracle.ts";

const CASES = Number(process.env.JSON_CASES ?? 20_000);
/** Maximum depth of values compared with the unbounded parser. It limits recursion. */
const UNCUT_DEPTH_MAX = 1024;

/** Checks one document. @returns the outcome: accepted, or the reason for rejection. */
function check(bytes: Uint8Array): string {
  const verdict = judge(bytes, JSON_DEPTH_MAX);
  if (!verdict.isAccepted) {
    assert.throws(() => parseJson(bytes), (error) => {
      assert.ok(error instanceof JsonError);
      const offsetBytes = Number(/ at byte (\d+)/.exec(error.message)?.[1] ?? 0);
      assert.ok(offsetBytes >= 0 && offsetBytes <= bytes.length, "byte offset of the error");
      return true;
    });
    assert.throws(() => prepareBatch(bodyOf(bytes)), ApiError, "as a payload");
    return verdict.reason;
  }
  const value = parseJson(bytes);
  assert.ok(isDeepStrictEqual(value, verdict.value), "the value");
  assert.equal(canonicalize(value), verdict.canonical);
  assert.equal(canonicalize(parseJson(Buffer.from(verdict.canonical))), verdict.canonical);
  checkPayload(bytes, verdict);
  checkUncut(bytes, verdict);
  return verdict.depth > PAYLOAD_DEPTH_MAX ? "accepted, too deep for a payload" : "accepted";
}

const HEAD =
  '{"batch_id":"b","source":"s","events":[{"stream":"t","record_key":"k","kind":"upserted",' +
  '"payload":';

/** A batch of one event with the document as its payload. */
function bodyOf(payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(HEAD), payload, Buffer.from("}]}")]);
}

/** Checks the document as the payload of an event. */
function checkPayload(bytes: Uint8Array, { depth, canonical }: Verdict & { isAccepted: true }) {
  const body = bodyOf(bytes);
  if (depth > PAYLOAD_DEPTH_MAX) {
    assert.throws(() => prepareBatch(body), (error) => {
      return error instanceof ApiError && error.code === "invalid_events";
    });
  } else {
    const [event] = submittedEvents(prepareBatch(body));
    assert.equal(event!.payload, canonical, "the stored payload");
  }
}

/** Checks `parseJsonText()`, which has no depth limit. */
function checkUncut(bytes: Uint8Array, { depth, value }: Verdict & { isAccepted: true }): void {
  if (depth > UNCUT_DEPTH_MAX) return;
  const uncut = depth > JSON_DEPTH_MAX ? judge(bytes, UNCUT_DEPTH_MAX) : { value };
  const read: unknown = parseJsonText(Buffer.from(bytes).toString());
  assert.ok("value" in uncut && isDeepStrictEqual(read, uncut.value), "parseJsonText()");
}

/** Formats a document for pasting into a test. */
function quoted(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString("hex");
  return bytes.length > 2000 ? `${bytes.length} bytes` : `Buffer.from("${hex}", "hex")`;
}

/** Outcomes that must occur often. Otherwise, the generator has lost coverage. */
const OUTCOMES = [
  ...["accepted", "accepted, too deep for a payload", "not UTF-8", "not JSON"],
  ...["a name appears twice", "an unpaired surrogate", "a number that overflows"],
  "an inexact integer",
];

test(`parseJson() agrees with an oracle on ${CASES} documents (SEED=${SEED})`, (context) => {
  const random = new SeededRandom();
  const counts = new Map(OUTCOMES.map((outcome) => [outcome, 0]));
  for (let number = 0; number < CASES; number++) {
    const bytes = almostJson(random);
    try {
      const outcome = check(bytes);
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    } catch (error) {
      const where = `document ${number} of SEED=${SEED}: ${quoted(bytes)}`;
      throw new Error(`${(error as Error).message}\n${where}`, { cause: error });
    }
  }
  context.diagnostic([...counts].map((count) => count.join(": ")).join(", "));
  for (const [outcome, count] of counts) {
    assert.ok(count >= CASES / 400, `${outcome}: ${count} of ${CASES} documents`);
  }
});

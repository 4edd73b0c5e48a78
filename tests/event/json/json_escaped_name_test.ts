/**
 * Regression: V8's `JSON.parse` reads `{"\n":1}` as `{"\\":1}` once it has parsed `{"\\":1}`. The
 * service would have stored, hashed and replayed a payload different from the one submitted.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { prepareBatch } from "../../../src/event/batch_reader.ts";
import { parseJson } from "../../../src/event/json/strict_json.ts";
import { submittedEvents } from "../../support/prepared.ts";

function memberNames(text: string): string[] {
  return Object.keys(parseJson(Buffer.from(text)) as Record<string, unknown>);
}

test("parseJson() distinguishes an escaped name from one that begins with the same escape", () => {
  const spelled = [
    ...['"\\n"', '"\\u0004"', '"\\u000a\\u000b"', '"\\""', '"\\\\n"', '"\\\\u"', '"\\\\"'],
    ...['"\\u005c\\u005c"', '"\\u00e9t\\u00e9"', '"\\ud83d\\ude00"', '"__proto__\\u0000"'],
  ];
  for (let round = 0; round < 50; round++) {
    for (const name of spelled) {
      for (const prefix of ["", '"a":0,', '"24":0,"b":[{}],']) {
        const text = `{${prefix}${name} : {"deep":{${name}:1}},"z":1}`;
        const wanted: string = JSON.parse(name);
        assert.ok(memberNames(text).includes(wanted), text);
        const { [wanted]: member } = parseJson(Buffer.from(text)) as Record<string, never>;
        assert.deepEqual(Object.keys(member!["deep"]), [wanted], text);
      }
    }
  }
});

test("prepareBatch() stores names as submitted, regardless of what was parsed earlier", () => {
  const batchOf = (payload: string) =>
    Buffer.from(
      `{"batch_id":"b","source":"s","events":[{"stream":"t","record_key":"k","kind":"upserted",` +
        `"payload":${payload}}]}`,
    );
  for (let round = 0; round < 50; round++) {
    for (const payload of ['{"\\\\":1}', '{"\\n":1}', '{"\\u0004":1}', '{"\\\\\\\\":1,"a":2}']) {
      assert.equal(submittedEvents(prepareBatch(batchOf(payload)))[0]!.payload, payload);
    }
  }
});

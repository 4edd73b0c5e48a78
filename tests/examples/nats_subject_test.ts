/** The rules of `nats_bridge` that need no NATS: subjects, and lines. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLogClient } from "../../mod.ts";
import { subjectOf, subjectToken } from "../../examples/support/nats_subject.ts";
import { storedLine } from "../../examples/support/stored_line.ts";
import { readLines } from "./support/nats_stream.ts";
import { withServing } from "../support/deployment.ts";

const TOKENS: [string, string][] = [
  ["orders", "orders"],
  ["a.b", "a%2Eb"],
  ["a%2Eb", "a%252Eb"],
  ["$JS~!'()", "%24JS%7E%21%27%28%29"],
  ["tab\tline\r\n", "tab%09line%0D%0A"],
  ["Zoë€\u{1f600}", "Zo%C3%AB%E2%82%AC%F0%9F%98%80"],
];
for (const [name, token] of TOKENS) {
  test(`subjectToken() of ${JSON.stringify(name)} is ${token}, and leads back`, () => {
    assert.equal(subjectToken(name), token);
    assert.equal(decodeURIComponent(token), name);
  });
}

test("subjectOf() keeps apart what dots would join", () => {
  assert.equal(subjectOf("ground", { source: "a.b", stream: "c" }), "ground.a%2Eb.c");
  assert.equal(subjectOf("ground", { source: "a", stream: "b.c" }), "ground.a.b%2Ec");
});

const PAYLOADS: unknown[] = [
  { "10": 1, "9": 2, a: { "2": [], "1": {} } },
  { "\u{20ac}": "\r\n\u0000\u{1f600}\u2028\u007f</x>", "": null, payload: '","content_hash":"' },
  [1e21, 1e-7, 0.1, -0, 9007199254740992, 1e300, 5e-324],
  "text",
  null,
  [{}, { event_id: '"},{"event_id":"' }],
];

test("storedLine() gives the bytes that the service sends", async () => {
  await withServing(async (served) => {
    const client = new EventLogClient(served.serving.fetch);
    const events = PAYLOADS.map((payload, index) => ({
      stream: "s",
      record_key: `key "${index}"\n\u{1f600}`,
      kind: "k\\",
      payload,
      ...(index % 2 === 0 && { occurred_at: "2026-01-01T00:00:00.5Z" }),
    }));
    await client.append({ source: "test", batchId: "b/\u0001", events });
    const lines: string[] = [];
    for await (const event of client.replay()) lines.push(storedLine(event));
    assert.deepEqual(lines, await readLines(served));
    assert.equal(lines.length, PAYLOADS.length);
  });
});

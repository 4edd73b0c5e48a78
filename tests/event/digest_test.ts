import assert from "node:assert/strict";
import { test } from "node:test";
import { batchDigest } from "../support/prepared.ts";
import { BATCH_DIGEST, EVENTS, SINGLE_DIGEST } from "./support/worked_example.ts";

test("batchDigest() follows the worked example", () => {
  assert.equal(batchDigest("crm", EVENTS), BATCH_DIGEST);
  assert.equal(batchDigest("crm", EVENTS.slice(1)), SINGLE_DIGEST);
});

test("batchDigest() depends on the source, the order and every identity field", () => {
  const [first, second] = EVENTS as [typeof EVENTS[0], typeof EVENTS[0]];
  const others = [
    batchDigest("crm2", EVENTS),
    batchDigest("crm", [second, first]),
    batchDigest("crm", [first, { ...second, stream: "other" }]),
    batchDigest("crm", [first, { ...second, recordKey: "other" }]),
    batchDigest("crm", [first, { ...second, kind: "other" }]),
    batchDigest("crm", [first, { ...second, occurredAt: "2026-01-02T03:04:05Z" }]),
    batchDigest("crm", [first, { ...second, payload: first.payload }]),
  ];
  assert.equal(new Set([BATCH_DIGEST, ...others]).size, others.length + 1);
});

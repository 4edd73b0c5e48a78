import assert from "node:assert/strict";
import { parseJsonText } from "../../src/event/json/strict_json.ts";
import { test } from "node:test";
import { sha256Hex } from "../../src/event/hash.ts";
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import type { PreparedEvent } from "../../src/event/types.ts";
import { batchDigest, type HashedEvent, sealEvent } from "../support/prepared.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";
import {
  BATCH_DIGEST,
  EVENT_HASHES,
  EVENT_IDS,
  EVENTS,
  IDENTITY,
  SINGLE_DIGEST,
} from "./support/worked_example.ts";

test("encodeBatch() follows the worked example", () => {
  EVENTS.forEach((event, index) => {
    assert.equal(sealEvent(IDENTITY, event, EVENT_IDS[index]!).eventHash, EVENT_HASHES[index]);
  });
});

test(`encodeBatch() agrees with canonicalize() (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let round = 0; round < 500; round++) {
    const identity = { ...IDENTITY, batchId: random.text(20) };
    const events = Array.from({ length: 1 + random.below(3) }, () => randomEvent(random));
    const items = events.map((event) => ({
      ...identityOf(event),
      content_hash: event.contentHash,
    }));
    const digest = sha256Hex(canonicalize({ v: 1, source: identity.source, events: items }));
    assert.equal(batchDigest(identity.source, events), digest, `seed ${SEED}`);
    for (const event of events) {
      const { line, eventHash } = sealEvent(identity, event, EVENT_IDS[0]!);
      const envelope = {
        ...identityOf(event),
        content_hash: event.contentHash,
        source: identity.source,
        batch_id: identity.batchId,
        observed_at: identity.observedAt,
        event_id: EVENT_IDS[0]!,
      };
      assert.equal(eventHash, sha256Hex(canonicalize(envelope)), `seed ${SEED}`);
      const stored = { ...envelope, payload: parseJsonText(event.payload), event_hash: eventHash };
      assert.deepEqual(parseJsonText(line), stored, `seed ${SEED}`);
    }
  }
});

test("encodeBatch() computes the digests of the worked example", () => {
  assert.equal(batchDigest("crm", EVENTS), BATCH_DIGEST);
  assert.equal(batchDigest("crm", EVENTS.slice(1)), SINGLE_DIGEST);
});

test("encodeBatch() computes digests that depend on source, order and every identity field", () => {
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

function identityOf(event: PreparedEvent): Record<string, string> {
  const { stream, recordKey, kind, occurredAt } = event;
  return {
    stream,
    record_key: recordKey,
    kind,
    ...(occurredAt === undefined ? {} : { occurred_at: occurredAt }),
  };
}

function randomEvent(random: SeededRandom): HashedEvent {
  const payload = canonicalize(random.text(20));
  return {
    stream: random.pick(["a", "a.b-c"]),
    recordKey: random.text(20),
    kind: random.text(5),
    occurredAt: random.chance(0.5) ? "2026-01-02T03:04:05.5Z" : undefined,
    payload,
    contentHash: sha256Hex(payload),
  };
}

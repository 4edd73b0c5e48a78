/** The violations that the audit of a soak detects, in handwritten histories. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Batch } from "../../../src/client/event_log_client.ts";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";
import { sha256Hex } from "../../../src/event/hash.ts";
import type { CommittedEvent, Receipt, RetirementReceipt } from "../../../src/event/types.ts";
import { Audit, digested } from "../../../tools/soak/audit.ts";
import { digestOf, Ledger } from "../../../tools/soak/ledger.ts";
import { Violation } from "../../../tools/soak/violation.ts";
import { idAt } from "../../support/event_ids.ts";

function batchOf(batchId: string, events: number): Batch {
  const submitted = Array.from({ length: events }, (_, place) => ({
    stream: "orders",
    record_key: `${batchId}/${place}`,
    kind: "upserted",
    payload: { place },
  }));
  return { source: "shop", batchId, events: submitted };
}

/** The event with its hash recomputed. */
function hashed(
  event: Omit<CommittedEvent, "event_hash"> & { event_hash?: string },
): CommittedEvent {
  const { payload: _payload, event_hash: _hash, ...envelope } = event;
  return { ...event, event_hash: sha256Hex(canonicalize(envelope)) };
}

/** The events in a batch as stored in the log. @param firstNumber number in the first event id. */
function committed({ source, batchId, events }: Batch, firstNumber: number): CommittedEvent[] {
  return events.map((event, place) =>
    hashed({
      ...event,
      source,
      batch_id: batchId,
      event_id: idAt(firstNumber + place),
      observed_at: "2026-01-01T00:00:00.000Z",
      content_hash: sha256Hex(canonicalize(event.payload)),
    })
  );
}

const RETIREMENT: RetirementReceipt = {
  v: 1,
  status: "retired",
  source: "shop",
  final_frontier: idAt(5),
  retirement_event_id: idAt(6),
};

function retirementOf({ source, retirement_event_id }: RetirementReceipt, frontier: string) {
  const [event] = committed({
    source: "system",
    batchId: `service/retire/${source}/${frontier}`,
    events: [{
      stream: "service.source_lifecycle",
      record_key: source,
      kind: "source_retired",
      payload: { v: 1, source, final_frontier: frontier },
    }],
  }, 6);
  return hashed({ ...event!, event_id: retirement_event_id });
}

function receiptOf(events: CommittedEvent[], status: Receipt["status"] = "committed"): Receipt {
  return {
    status,
    batch_digest: digestOf("shop", events.map(digested)),
    events: events.length,
    first_event_id: events[0]!.event_id,
    last_event_id: events.at(-1)!.event_id,
  };
}

/** Three batches of 2, 3 and 1 events. The first two are acknowledged. */
function known() {
  const ledger = new Ledger();
  const batches = [batchOf("a", 2), batchOf("b", 3), batchOf("c", 1)];
  const [a, b, c] = [
    committed(batches[0]!, 1),
    committed(batches[1]!, 3),
    committed(batches[2]!, 6),
  ];
  const entries = batches.map((batch) => ledger.submit(batch));
  ledger.acknowledge(entries[0]!, receiptOf(a));
  ledger.acknowledge(entries[1]!, receiptOf(b));
  return { ledger, entries, a, b, c, heads: new Map<string, string>() };
}
type Known = ReturnType<typeof known>;

function audit({ ledger, heads }: Known, events: CommittedEvent[]): Audit {
  const audit = new Audit(ledger, heads);
  audit.takeAll(events);
  audit.settle(ledger.due());
  audit.checkHeads();
  return audit;
}

test("Audit accepts a log that contains every acknowledged batch, with or without others", () => {
  const state = known();
  const { a, b, c } = state;
  assert.equal(audit(state, [...a, ...b]).history.length, 5);
  assert.equal(audit(state, [...a, ...b, ...c]).history.length, 6);
});

/** Changes to a correct log, and the violation that the audit reports. */
const FAULTS: Record<string, [spoil: (state: Known) => CommittedEvent[], RegExp]> = {
  "a lost batch": [({ a }) => a, /shop\/b was acknowledged, but is lost/],
  "a partial batch": [({ a, b }) => [...a, ...b.slice(0, 2)], /shop\/b has 2 of 3 events/],
  "a duplicate batch": [
    ({ a, b }) => [...a, ...b, ...committed(batchOf("a", 2), 10)],
    /shop\/a is in the log twice/,
  ],
  "a batch that no client submitted": [
    ({ a, b }) => [...a, ...b, ...committed(batchOf("x", 1), 9)],
    /shop\/x is in the log, but no client submitted it/,
  ],
  "a rejected batch": [({ ledger, entries, a, b, c }) => {
    ledger.refuse(entries[2]!);
    return [...a, ...b, ...c];
  }, /shop\/c is in the log, but was rejected/],
  "ids that differ from those in the receipt": [
    ({ a }) => [...a, ...committed(batchOf("b", 3), 30)],
    /shop\/b has event ids .*1e to .*20, not .*03 to .*05/,
  ],
  "ids that do not increase": [({ a, b }) => [...b, ...a], /follows .* in the log/],
  "an altered payload": [
    ({ a, b }) => [{ ...a[0]!, payload: { place: 7 } }, a[1]!, ...b],
    /payload of event .* does not match its hash/,
  ],
  "an altered envelope": [
    ({ a, b }) => [{ ...a[0]!, record_key: "other" }, a[1]!, ...b],
    /^event .* does not match its hash/,
  ],
  "an altered event with its hashes repaired": [
    ({ a, b }) => [hashed({ ...a[0]!, record_key: "other" }), a[1]!, ...b],
    /shop\/a in the log differs from the submitted batch/,
  ],
  "a history that differs from a known chain head": [({ heads, a, b }) => {
    heads.set(idAt(2), "0".repeat(64));
    return [...a, ...b];
  }, /chain head after event .* has changed/],
  "a known chain head of a missing event": [({ heads, a, b }) => {
    heads.set(idAt(7), "0".repeat(64));
    return [...a, ...b];
  }, /does not contain event .*07, whose chain head is known/],
  "a batch after the retirement of its source": [
    ({ a, b, c }) => [
      ...[...a, ...b, retirementOf(RETIREMENT, idAt(5))],
      hashed({ ...c[0]!, event_id: idAt(7) }),
    ],
    /shop\/c was committed after its source was retired/,
  ],
  "a lost retirement": [({ ledger, a, b }) => {
    ledger.retire(RETIREMENT);
    return [...a, ...b];
  }, /retirement of shop is lost/],
  "a retirement with a different frontier": [
    ({ a, b }) => [...a, ...b, retirementOf(RETIREMENT, idAt(4))],
    /retirement of shop names .*04 as its last event, not .*05/,
  ],
  "several commit times in a batch": [
    ({ a, b }) => [a[0]!, hashed({ ...a[1]!, observed_at: "2026-01-01T00:00:00.001Z" }), ...b],
    /shop\/a has several commit times/,
  ],
};

for (const [name, [spoil, message]] of Object.entries(FAULTS)) {
  test(`Audit detects ${name}`, () => {
    const state = known();
    const events = spoil(state);
    assert.throws(() => audit(state, events), (error) => {
      return error instanceof Violation && message.test(error.message);
    });
  });
}

test("Ledger rejects a response that contradicts an earlier one", () => {
  const { ledger, entries, a, c } = known();
  const receipt: Receipt = { ...receiptOf(a), status: "duplicate" };
  ledger.acknowledge(entries[0]!, receipt);
  const answers: [Partial<Receipt>, RegExp][] = [
    [{ status: "committed" }, /was committed twice/],
    [{ first_event_id: idAt(0) }, /has two receipts/],
    [{ batch_digest: "0".repeat(64) }, /with a different digest/],
    [{ events: 3 }, /acknowledged with 3 events/],
  ];
  for (const [other, message] of answers) {
    assert.throws(() => ledger.acknowledge(entries[0]!, { ...receipt, ...other }), message);
  }
  ledger.retire(RETIREMENT);
  const again = { ...RETIREMENT, retirement_event_id: idAt(7) };
  assert.throws(() => ledger.retire(again), /retired twice/);
  ledger.refuse(entries[2]!);
  assert.throws(() => ledger.acknowledge(entries[2]!, receiptOf(c)), /rejected/);
});

/** What the soak's audit finds wrong, case by case, on histories made by hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Batch } from "../../../src/client/batch_body.ts";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";
import { sha256Hex } from "../../../src/event/hash.ts";
import type { CommittedEvent, Receipt, RetirementReceipt } from "../../../src/event/types.ts";
import { Audit, type KnownHeads, type Pages } from "../../../tools/soak/audit.ts";
import { digestOf, Ledger, type LedgerEntry } from "../../../tools/soak/ledger.ts";
import { Violation } from "../../../tools/soak/violation.ts";

function eventId(number: number): string {
  return `019b76da-a800-7000-8000-${number.toString(16).padStart(12, "0")}`;
}

function batchOf(batchId: string, events: number): Batch {
  const submitted = Array.from({ length: events }, (_, place) => ({
    stream: "orders",
    record_key: `${batchId}/${place}`,
    kind: "upserted",
    payload: { place },
  }));
  return { source: "shop", batchId, events: submitted };
}

/** The events of a batch as the log has them. @param firstNumber of the first id. */
function committed({ source, batchId, events }: Batch, firstNumber: number): CommittedEvent[] {
  return events.map((event, place) =>
    hashed({
      ...event,
      source,
      batch_id: batchId,
      event_id: eventId(firstNumber + place),
      observed_at: "2026-01-01T00:00:00.000Z",
      content_hash: sha256Hex(canonicalize(event.payload)),
    })
  );
}

/** The event with the hash of what it says, whatever it had. */
function hashed(
  event: Omit<CommittedEvent, "event_hash"> & { event_hash?: string },
): CommittedEvent {
  const { payload: _payload, event_hash: _hash, ...envelope } = event;
  return { ...event, event_hash: sha256Hex(canonicalize(envelope)) };
}

function retirementOf(source: string, finalFrontier: string, number: number): CommittedEvent {
  const [event] = committed({
    source: "system",
    batchId: `service/retire/${source}/${finalFrontier}`,
    events: [{
      stream: "service.source_lifecycle",
      record_key: source,
      kind: "source_retired",
      payload: { v: 1, source, final_frontier: finalFrontier },
    }],
  }, number);
  return event!;
}

function receiptOf(events: CommittedEvent[], status: Receipt["status"] = "committed"): Receipt {
  const digested = events.map(({ stream, record_key, kind, content_hash }) => ({
    stream,
    record_key,
    kind,
    content_hash,
  }));
  return {
    status,
    batch_digest: digestOf("shop", digested),
    events: events.length,
    first_event_id: events[0]!.event_id,
    last_event_id: events.at(-1)!.event_id,
  };
}

const RETIREMENT: RetirementReceipt = {
  v: 1,
  status: "retired",
  source: "shop",
  final_frontier: eventId(5),
  retirement_event_id: eventId(6),
};

/** Three batches of 2, 3 and 1 events; all but the third are acknowledged. */
interface Known {
  ledger: Ledger;
  entries: LedgerEntry[];
  groups: CommittedEvent[][];
  heads: KnownHeads;
}

function known(): Known {
  const ledger = new Ledger();
  const batches = [batchOf("a", 2), batchOf("b", 3), batchOf("c", 1)];
  const groups = [committed(batches[0]!, 1), committed(batches[1]!, 3), committed(batches[2]!, 6)];
  const entries = batches.map((batch) => ledger.submit(batch));
  for (const place of [0, 1]) ledger.acknowledge(entries[place]!, receiptOf(groups[place]!));
  return { ledger, entries, groups, heads: new Map() };
}

function audit({ ledger, heads }: Known, events: CommittedEvent[]): Audit {
  const audit = new Audit(ledger, heads);
  audit.takeAll(events);
  audit.settle(ledger.due());
  audit.checkHeads();
  return audit;
}

test("Audit takes a log with all that was acknowledged, with and without the rest", () => {
  const state = known();
  const [a, b, c] = state.groups as [CommittedEvent[], CommittedEvent[], CommittedEvent[]];
  assert.equal(audit(state, [...a, ...b]).history.length, 5);
  assert.equal(audit(state, [...a, ...b, ...c]).history.length, 6);
});

test("Audit goes on where it was, and finds what was acknowledged meanwhile", () => {
  const { ledger, entries, groups, heads } = known();
  const audit = new Audit(ledger, heads);
  audit.takeAll(groups.slice(0, 2).flat());
  audit.settle(ledger.due());
  audit.takeAll(groups[2]!);
  ledger.acknowledge(entries[2]!, receiptOf(groups[2]!));
  audit.settle(ledger.due());
  assert.equal(audit.history.length, 6);
});

/** A client of a log that holds these events, a page for each two. */
function clientOf(events: CommittedEvent[]): Pages {
  return {
    async *replayPages({ after = null } = {}) {
      const left = events.filter(({ event_id }) => after === null || event_id > after);
      const through = events.at(-1)?.event_id ?? null;
      do {
        const page = left.splice(0, 2);
        const nextAfter = page.at(-1)?.event_id ?? through;
        yield await Promise.resolve({ events: page, nextAfter, snapshotThroughEventId: through });
      } while (left.length > 0);
    },
  };
}

const { signal } = new AbortController();

test("Audit reads on page by page, and finds that what it has read is gone", async () => {
  const { ledger, entries, groups, heads } = known();
  const audit = new Audit(ledger, heads);
  const read = groups.slice(0, 2).flat();
  await audit.catchUp(clientOf(read), signal);
  await audit.catchUp(clientOf(read), signal);
  assert.equal(audit.history.length, 5);
  ledger.acknowledge(entries[2]!, receiptOf(groups[2]!));
  await audit.catchUp(clientOf(groups.flat()), signal);
  assert.equal(audit.history.length, 6);
  const shorter = clientOf(read);
  await assert.rejects(() => audit.catchUp(shorter, signal), /06 was in the log and is lost/);
});

/** What is done to a good log, and what the audit says. */
const FAULTS: Record<string, [(state: Known) => CommittedEvent[], RegExp]> = {
  "a lost batch": [({ groups: [a] }) => a!, /shop\/b was acknowledged and is lost/],
  "half of a batch": [
    ({ groups: [a, b] }) => [...a!, ...b!.slice(0, 2)],
    /shop\/b has 2 of 3 events/,
  ],
  "half of a batch nobody was told of": [
    (state) => {
      const batch = batchOf("d", 2);
      state.ledger.submit(batch);
      return [...state.groups.slice(0, 2).flat(), committed(batch, 9)[0]!];
    },
    /shop\/d has 1 of 2 events/,
  ],
  "a batch twice": [
    ({ groups: [a, b] }) => [...a!, ...b!, ...committed(batchOf("a", 2), 10)],
    /shop\/a is in the log twice/,
  ],
  "a batch in two parts": [
    ({ groups: [a, b] }) => {
      const [first, second] = committed(batchOf("a", 2), 1);
      return [first!, ...b!, hashed({ ...second!, event_id: eventId(20) }), ...a!.slice(2)];
    },
    /shop\/a has 1 of 2 events/,
  ],
  "a batch that nobody submitted": [
    ({ groups: [a, b] }) => [...a!, ...b!, ...committed(batchOf("x", 1), 9)],
    /shop\/x is in the log, and nobody submitted it/,
  ],
  "a refused batch": [
    ({ ledger, entries, groups }) => {
      ledger.refuse(entries[2]!);
      return groups.flat();
    },
    /shop\/c is in the log, and was refused/,
  ],
  "other ids than those of the receipt": [
    ({ groups: [a] }) => [...a!, ...committed(batchOf("b", 3), 30)],
    /shop\/b has ids from .*1e, not .*03/,
  ],
  "an order that does not increase": [
    ({ groups: [a, b] }) => [...b!, ...a!],
    /comes after .* in the log/,
  ],
  "a payload that was altered": [
    ({ groups: [a, b] }) => [{ ...a![0]!, payload: { place: 7 } }, a![1]!, ...b!],
    /payload of event .* is not what was hashed/,
  ],
  "an envelope that was altered": [
    ({ groups: [a, b] }) => [{ ...a![0]!, record_key: "other" }, a![1]!, ...b!],
    /event .* has another hash/,
  ],
  "an altered event with its hashes repaired": [
    ({ groups: [a, b] }) => [hashed({ ...a![0]!, record_key: "other" }), a![1]!, ...b!],
    /shop\/a is in the log otherwise than it was submitted/,
  ],
  "another history behind a known head": [
    ({ heads, groups }) => {
      heads.set(eventId(2), "0".repeat(64));
      return groups.flat();
    },
    /chain head after event .* has changed/,
  ],
  "a known head of an event that is gone": [
    ({ heads, groups }) => {
      heads.set(eventId(7), "0".repeat(64));
      return groups.flat();
    },
    /does not contain event .*07, whose chain head is known/,
  ],
  "a batch after the retirement of its source": [
    ({ groups: [a, b, c] }) => {
      return [
        ...a!,
        ...b!,
        retirementOf("shop", eventId(5), 6),
        hashed({
          ...c![0]!,
          event_id: eventId(7),
        }),
      ];
    },
    /shop\/c was committed after its source was retired/,
  ],
  "a lost retirement": [
    ({ ledger, groups: [a, b] }) => {
      ledger.retire(RETIREMENT);
      return [...a!, ...b!];
    },
    /retirement of shop is lost/,
  ],
  "a retirement twice": [
    ({ groups: [a, b] }) => {
      const retirements = [6, 7].map((number) => retirementOf("shop", eventId(5), number));
      const other = committed(batchOf("c", 1), 8)[0]!;
      const between = hashed({ ...retirements[1]!, batch_id: `${retirements[1]!.batch_id}-2` });
      return [...a!, ...b!, retirements[0]!, between, other];
    },
    /retirement of shop is in the log twice/,
  ],
  "a retirement of several events": [
    ({ groups: [a, b, c] }) => {
      const retirements = [6, 7].map((number) => retirementOf("shop", eventId(5), number));
      return [...a!, ...b!, ...retirements, ...c!.slice(1)];
    },
    /retirement of shop is not one event/,
  ],
  "several times of commit in a batch": [
    ({ groups: [a, b] }) => {
      const later = hashed({ ...a![1]!, observed_at: "2026-01-01T00:00:00.001Z" });
      return [a![0]!, later, ...b!];
    },
    /shop\/a has several times of commit/,
  ],
  "a retirement with another frontier": [
    ({ groups: [a, b] }) =>
      [...a!, ...b!, retirementOf("shop", eventId(4), 6)].concat(
        committed(batchOf("c", 1), 9),
      ),
    /retirement of shop names .*04 as its last event, not .*05/,
  ],
};

for (const [name, [spoil, message]] of Object.entries(FAULTS)) {
  test(`Audit finds ${name}`, () => {
    const state = known();
    assert.throws(() => audit(state, spoil(state)), (error) => {
      assert.ok(error instanceof Violation);
      assert.match(error.message, message);
      return true;
    });
  });
}

/** What is answered to batch `a` after its receipt, and what the ledger says. */
const ANSWERS: Record<string, [(receipt: Receipt) => Receipt, RegExp]> = {
  "a second commit": [(receipt) => receipt, /was committed twice/],
  "ids in disorder": [
    (receipt) => ({ ...receipt, status: "duplicate", last_event_id: eventId(0) }),
    /ids in disorder/,
  ],
  "other ids": [
    (receipt) => ({ ...receipt, status: "duplicate", first_event_id: eventId(0) }),
    /has two receipts/,
  ],
  "another digest": [
    (receipt) => ({ ...receipt, status: "duplicate", batch_digest: "0".repeat(64) }),
    /with another digest/,
  ],
  "another count": [
    (receipt) => ({ ...receipt, status: "duplicate", events: 3 }),
    /acknowledged with 3 events/,
  ],
};

for (const [name, [answer, message]] of Object.entries(ANSWERS)) {
  test(`Ledger does not take ${name} for a batch that has a receipt`, () => {
    const { ledger, entries, groups } = known();
    const receipt = receiptOf(groups[0]!);
    ledger.acknowledge(entries[0]!, { ...receipt, status: "duplicate" });
    assert.throws(() => ledger.acknowledge(entries[0]!, answer(receipt)), message);
  });
}

test("Ledger takes a duplicate's answer that comes before that of the commit", () => {
  const { ledger, entries, groups } = known();
  ledger.acknowledge(entries[2]!, receiptOf(groups[2]!, "duplicate"));
  ledger.acknowledge(entries[2]!, receiptOf(groups[2]!));
  assert.equal(ledger.acknowledged.length, 3);
});

test("Ledger does not take two retirements of a source, or an answer after a refusal", () => {
  const { ledger, entries, groups } = known();
  ledger.retire(RETIREMENT);
  ledger.retire({ ...RETIREMENT, status: "already_retired" });
  const other = { ...RETIREMENT, retirement_event_id: eventId(7) };
  assert.throws(() => ledger.retire(other), /retired twice/);
  ledger.refuse(entries[2]!);
  assert.throws(() => ledger.acknowledge(entries[2]!, receiptOf(groups[2]!)), /refused/);
  assert.throws(() => ledger.refuse(entries[0]!), /acknowledged, and then refused/);
});

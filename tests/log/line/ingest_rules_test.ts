import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { IngestRules } from "../../../src/log/line/ingest_rules.ts";
import { StoredEvent } from "../../../src/log/line/stored_event.ts";

const ID = "019b76da-a800-7001-8203-040506070809";
const HASH = "0".repeat(64);

/** The members of a line, spelled as in the line. */
const VALID = {
  source: "shop",
  stream: "orders",
  record_key: "a\\nb",
  kind: "upserted",
  occurred_at: "2026-01-31T23:59:59.5Z",
  observed_at: "2026-02-01T00:00:00.000Z",
  payload: '{"a":[1,2.5,"x\\u0001\\"é"],"b":null}',
  batch_id: "b/1",
};
const RETIREMENT = {
  source: "system",
  stream: "service.source_lifecycle",
  record_key: "shop",
  kind: "source_retired",
  occurred_at: "",
  payload: `{"final_frontier":"${ID}","source":"shop","v":1}`,
  batch_id: `service/retire/shop/${ID}`,
};
const MARKER = {
  source: "store",
  stream: "service.source_lineage",
  record_key: "shop",
  kind: "source_succeeded",
  occurred_at: "",
  payload: `{"predecessor_final_frontier":"${ID}","predecessor_source":"shop","v":1}`,
};

function lineOf(changed: Partial<typeof VALID>): Buffer {
  const { payload, batch_id, ...strings } = { ...VALID, ...changed };
  const texts = Object.entries(strings).filter(([, text]) => text !== "" || changed.kind === text)
    .map(([name, text]) => `,"${name}":"${text}"`).join("");
  return Buffer.from(
    `{"event_id":"${ID}"${texts},"payload":${payload},"content_hash":"${HASH}",` +
      `"batch_id":"${batch_id}","event_hash":"${HASH}"}`,
    "latin1",
  );
}

function faultIn(
  changed: Partial<typeof VALID>,
  { isFirst = true, rules = new IngestRules() } = {},
) {
  const event = new StoredEvent();
  const line = lineOf(changed);
  assert.ok(event.take(line, 0, line.length), line.toString());
  return rules.faultIn(event, isFirst);
}

/** Encodes in UTF-8; `lineOf()` writes each character as a byte. */
const utf8 = (text: string) => Buffer.from(text).toString("latin1");

test("IngestRules accepts what ingest and the service write", () => {
  const accepted: Partial<typeof VALID>[] = [
    { payload: utf8(VALID.payload) },
    { payload: "-0.5" },
    { payload: utf8('"€\u{1f600}"') },
    { payload: '{"\\n":1,"a":{}}' },
    { payload: '{"":1e-7,"x":1e+21}' },
    { payload: "[".repeat(128) + "]".repeat(128) },
    { record_key: utf8("é".repeat(512)), payload: "1" },
    { ...RETIREMENT },
    { ...MARKER },
  ];
  for (const changed of accepted) assert.equal(faultIn({ payload: "1", ...changed }), null);
});

test("IngestRules refuses what no request can have appended", () => {
  const refused: Partial<typeof VALID>[] = [
    ...['{"a":\n1}', "hello", '1,"event_id":"x","source":"admin"', "1e400", '{"b":1,"a":2}'],
    ...['{"a":1,"a":1}', " 1", "1.0", "01", "-0", '"\\u0041"', '"\\ud800"', '"\xff"', "[1,]"],
    ...["[".repeat(129) + "]".repeat(129), "9007199254740993", '"\x01"', '{"a":1}{}', '{"a":1'],
  ].map((form) => typeof form === "string" ? { payload: form } : form);
  refused.push(
    { source: "A b" },
    { source: "system" },
    { source: "a".repeat(129) },
    { stream: "A" },
    { kind: "" },
    { kind: "k".repeat(129) },
    { record_key: "k".repeat(1025) },
    { record_key: "\\u0041" },
    { record_key: "\\ud800" },
    { record_key: "\\x" },
    { record_key: "\xff" },
    { batch_id: "b".repeat(5000) },
    { batch_id: "service/x" },
    { occurred_at: "2026-02-30T00:00:00Z" },
    { observed_at: "2026-02-30T00:00:00.000Z" },
    { ...RETIREMENT, record_key: "other" },
    { ...RETIREMENT, payload: "1" },
    { ...MARKER, payload: "1" },
    { ...MARKER, kind: "upserted" },
  );
  for (const changed of refused) {
    assert.notEqual(faultIn({ payload: "1", ...changed }), null, JSON.stringify(changed));
  }
  const payload = "1";
  assert.notEqual(faultIn({ ...MARKER }, { isFirst: false }), null, "a marker that is not first");
  const rules = new IngestRules();
  assert.equal(faultIn({ payload }, { rules }), null);
  const next = { isFirst: false, rules };
  const later = { payload, observed_at: "2026-02-01T00:00:00.001Z" };
  assert.match(faultIn(later, next)!, /observed_at/);
  for (let event = 2; event < 10_000; event++) {
    assert.equal(faultIn({ payload }, next), null);
  }
  assert.match(faultIn({ payload }, next)!, /10000/);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { readReplayRequest } from "../../src/api/replay_request.ts";

const LIMITS = { defaultLimit: 10, maxLimit: 100 };
const ID = "0190a5d4-1c00-7abc-8def-0123456789ab";

test("readReplayRequest() takes the default limit and no filter from an empty query", () => {
  assert.deepEqual(readReplayRequest("", LIMITS), {
    query: { after: undefined, filter: {}, limitEvents: 10 },
    follow: false,
  });
});

test("readReplayRequest() reads every parameter", () => {
  const query =
    `after=${ID}&source=system&stream=a.b-c_d&record_key=%20&kind=x&limit=100&follow=true`;
  assert.deepEqual(readReplayRequest(query, LIMITS), {
    query: {
      after: ID,
      filter: { source: "system", stream: "a.b-c_d", recordKey: " ", kind: "x" },
      limitEvents: 100,
    },
    follow: true,
  });
});

test("readReplayRequest() takes any string as a source, a stream and a kind", () => {
  const query = `source=Shop&stream=a%2Fb%20%22&kind=${"k".repeat(129)}`;
  const { filter } = readReplayRequest(query, LIMITS).query;
  assert.deepEqual(filter, { source: "Shop", stream: 'a/b "', kind: "k".repeat(129) });
  assert.deepEqual(readReplayRequest("source&stream=&kind=", LIMITS).query.filter, {
    source: "",
    stream: "",
    kind: "",
  });
});

const BAD_VALUES = [
  "limit=",
  "limit=0",
  "limit=-1",
  "limit=+1",
  "limit=01",
  "limit=1.0",
  "limit=1e1",
  "limit=0x10",
  "limit=%D9%A1",
  "limit=101",
  "limit=99999999999999999999999999",
  "after=",
  "after=latest",
  `after=${ID.toUpperCase()}`,
  `after=${ID.replace("-7abc-", "-4abc-")}`,
  `after=${ID}%0A`,
  "record_key=",
  `record_key=${"k".repeat(1025)}`,
  "follow=",
  "follow=1",
  "follow=TRUE",
];

for (const query of BAD_VALUES) {
  const shown = query.length > 60 ? `${query.slice(0, 60)}...` : query;
  test(`readReplayRequest() refuses the value in ${shown}`, () => {
    assert.throws(() => readReplayRequest(query, LIMITS), { code: "invalid_replay_request" });
  });
}

for (const query of ["page=1", "limit=1&limit=1", "limit=%"]) {
  test(`readReplayRequest() refuses the query string ${query}`, () => {
    assert.throws(() => readReplayRequest(query, LIMITS), { code: "invalid_request" });
  });
}

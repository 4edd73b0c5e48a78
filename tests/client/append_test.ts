/** Calls and their retries against a service that fails on command. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionError, EventLogError, ProtocolError } from "../../src/client/errors.ts";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import { CLIENT_ATTEMPTS_MAX } from "../../src/client/transport.ts";
import {
  BATCH,
  CALLS,
  errorOf,
  json,
  loseConnection,
  RECEIPT,
  refuse,
  type Reply,
  withFakeService,
} from "./support/fake_service.ts";
import { CLIENT_BACKOFF_MS, CLIENT_BACKOFF_MS_MAX } from "../../src/client/retry.ts";

test("append() sends the bearer token", async () => {
  await withFakeService([json(200, RECEIPT)], async ({ client, seen }) => {
    await client.append(BATCH);
    assert.equal(seen[0]!.headers.authorization, "Bearer secret");
  }, { token: "secret" });
});

test("EventLogClient rejects a token that is not a valid header value, without quoting it", () => {
  for (const token of ["sec\nret", "sec\u{100}ret"]) {
    const make = () => new EventLogClient(() => Promise.reject(new Error("unused")), { token });
    assert.throws(make, (error) => error instanceof TypeError && !error.message.includes("sec"));
  }
});

/** Sends only part of the response, then closes the connection. */
const loseAnswer: Reply = (response) => {
  response.writeHead(200, { "content-length": "1000" });
  response.write('{"status":', () => response.destroy());
};

const REPEATED: [string, Reply][] = [
  ["a lost connection", loseConnection],
  ["a truncated response", loseAnswer],
  ["a 429", refuse(429, "overloaded")],
];
for (const [name, failure] of REPEATED) {
  test(`append() resends the same bytes after ${name}`, async () => {
    const duplicate = { ...RECEIPT, status: "duplicate" };
    const replies = [failure, failure, json(200, duplicate)];
    await withFakeService(replies, async ({ client, seen, timing }) => {
      assert.deepEqual(await client.append(BATCH), duplicate);
      assert.equal(seen.length, 3);
      assert.equal(new Set(seen.map(({ body }) => body)).size, 1);
      assert.deepEqual(timing.pausesMs, [CLIENT_BACKOFF_MS, 2 * CLIENT_BACKOFF_MS]);
    });
  });
}

test("append() waits for Retry-After plus backoff", async () => {
  const busy = refuse(429, "overloaded", {}, { "retry-after": "3" });
  await withFakeService([busy, json(200, RECEIPT)], async ({ client, timing }) => {
    await client.append(BATCH);
    assert.deepEqual(timing.pausesMs, [3000 + CLIENT_BACKOFF_MS]);
  });
});

test("append() gives up after attemptsMax attempts with capped backoff", async () => {
  await withFakeService([loseConnection], async ({ client, seen, timing }) => {
    const { message } = await errorOf(ConnectionError, client.append(BATCH));
    assert.match(message, /^POST \/v1\/events got no response: connection to .*s\.sock/);
    assert.equal(seen.length, CLIENT_ATTEMPTS_MAX);
    assert.deepEqual(timing.pausesMs.slice(0, 3), [100, 200, 400]);
    assert.equal(Math.max(...timing.pausesMs), CLIENT_BACKOFF_MS_MAX);
  }, { writeTimeoutMs: 1_000_000 });
});

test("append() starts no attempt after its timeout", async () => {
  await withFakeService([refuse(429, "overloaded")], async ({ client, timing }) => {
    await assert.rejects(client.append(BATCH), { code: "overloaded" });
    assert.deepEqual(timing.pausesMs, [100, 200, 400, 800, 1600, 3200]);
  }, { writeTimeoutMs: 10_000 });
});

const FINAL: [number, string][] = [
  [400, "invalid_events"],
  [401, "unauthorized"],
  [409, "batch_id_conflict"],
  [409, "source_retired"],
  [413, "body_too_large"],
  [500, "internal_error"],
  [500, "storage_full"],
  [503, "writer_poisoned"],
  [418, "a_code_of_tomorrow"],
];
for (const [status, code] of FINAL) {
  test(`no call is repeated after ${status} ${code}`, async () => {
    const context = { source: "shop", hint: [1] };
    await withFakeService([refuse(status, code, context)], async ({ client, seen }) => {
      for (const call of Object.values(CALLS)) {
        const error = await errorOf(EventLogError, call(client));
        assert.deepEqual([error.status, error.code], [status, code]);
        assert.equal(error.message, `${code}: ${code} happened`);
        assert.deepEqual(error.body, { error: code, message: `${code} happened`, ...context });
      }
      assert.equal(seen.length, Object.values(CALLS).length);
    });
  });
}

test("append() rejects with the status of an error response without an error document", async () => {
  const page: Reply = (response) => void response.writeHead(502).end("<p>bad gateway");
  await withFakeService([page], async ({ client }) => {
    const error = await errorOf(EventLogError, client.append(BATCH));
    assert.deepEqual([error.status, error.code, error.body], [502, null, "<p>bad gateway"]);
  });
});

const NONSENSE: [string, Reply][] = [
  ["text", (response) => void response.end("hello")],
  ["another document", json(200, { hello: 1 })],
  ["null", json(200, null)],
];
for (const [name, reply] of NONSENSE) {
  test(`append() does not accept ${name} as a receipt`, async () => {
    await withFakeService([reply], async ({ client, seen }) => {
      await assert.rejects(client.append(BATCH), ProtocolError);
      assert.equal(seen.length, 1);
    });
  });
}

test("append() rejects with its signal's abort reason, before the call and during the wait", async () => {
  const abort = new AbortController();
  const reason = new Error("no longer needed");
  const abortAndKeepSilent: Reply = () => abort.abort(reason);
  await withFakeService([abortAndKeepSilent], async ({ client, seen }) => {
    await assert.rejects(client.append(BATCH, { signal: abort.signal }), reason);
    await assert.rejects(client.append(BATCH, { signal: abort.signal }), reason);
    assert.equal(seen.length, 1);
  });
});

const UNSAYABLE: [string, unknown][] = [
  ["NaN", { total: NaN }],
  ["infinity", [1, Infinity]],
  ["a bigint", 1n],
];
for (const [name, payload] of UNSAYABLE) {
  test(`append() rejects ${name} in a payload instead of altering it`, async () => {
    await withFakeService([json(200, RECEIPT)], async ({ client, seen }) => {
      const events = [{ ...BATCH.events[0]!, payload }];
      await assert.rejects(client.append({ ...BATCH, events }), TypeError);
      assert.equal(seen.length, 0);
    });
  });
}

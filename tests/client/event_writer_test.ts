/** The writer that batches, against the real service and one that fails on command. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLogError } from "../../src/client/errors.ts";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import type { SubmittedEvent } from "../../src/event/types.ts";
import { withServing } from "../support/deployment.ts";
import {
  collect,
  json,
  loseConnection,
  RECEIPT,
  refuse,
  withFakeService,
} from "./support/fake_service.ts";

function event(number: number, members: Partial<SubmittedEvent> = {}): SubmittedEvent {
  return { stream: "a", record_key: `${number}`, kind: "upserted", payload: number, ...members };
}

/** The record keys that a request contains. */
function keysIn(body: string): string[] {
  return JSON.parse(body).events.map(({ record_key }: SubmittedEvent) => record_key);
}

test("writer() appends in order, in batches, and tells each caller its receipt", () =>
  withServing(async ({ serving }) => {
    const log = new EventLogClient(serving.fetch);
    const writer = log.writer({ source: "shop", eventsMax: 100 });
    const receipts = Array.from({ length: 250 }, (_, number) => writer.append(event(number)));
    await writer.close();
    const events = await collect(log.replay());
    assert.deepEqual(events.map(({ payload }) => payload), [...receipts.keys()]);
    assert.deepEqual(await Promise.all(receipts.map(async (each) => (await each).events)), [
      ...Array(200).fill(100),
      ...Array(50).fill(50),
    ]);
    await assert.rejects(writer.append(event(1)), /the writer is closed/);
  }));

test("a conflict or an invalid event rejects its own append(), and the writer goes on", () =>
  withServing(async ({ serving }) => {
    const log = new EventLogClient(serving.fetch);
    const writer = log.writer({ source: "shop" });
    const results = [
      writer.append(event(0), { expectedFrontier: null }),
      writer.append(event(1)),
      writer.append(event(2), { expectedFrontier: null }),
      writer.append(event(3, { kind: "" })),
      writer.append(event(4)),
      writer.append(event(5, { payload: NaN })),
    ];
    await writer.close();
    const settled = await Promise.allSettled(results);
    const codes = settled.map((each) =>
      each.status === "fulfilled"
        ? each.value.status
        : each.reason instanceof EventLogError
        ? each.reason.code
        : each.reason.name
    );
    assert.deepEqual(codes, [
      "committed",
      "committed",
      "stream_frontier_conflict",
      "invalid_events",
      "committed",
      "TypeError",
    ]);
    assert.deepEqual((await collect(log.replay())).map(({ payload }) => payload), [0, 1, 4]);
  }));

test("an event over the service's limit rejects its own append(), and the writer goes on", () =>
  withFakeService([refuse(413, "body_too_large"), json(200, RECEIPT)], async ({ client }) => {
    const writer = client.writer({ source: "shop", eventsMax: 1 });
    const tooLarge = writer.append(event(0));
    assert.deepEqual(await writer.append(event(1)), RECEIPT);
    await assert.rejects(tooLarge, { code: "body_too_large" });
    await writer.close();
  }));

for (const name of ["eventsMax", "bytesMax", "delayMs", "bufferBytesMax"]) {
  test(`writer() refuses a ${name} that is no number`, () => {
    const client = new EventLogClient(() => Promise.reject(new Error("not called")));
    for (const value of [NaN, "ten"]) {
      const options = { source: "a", [name]: value } as Parameters<typeof client.writer>[0];
      assert.throws(() => client.writer(options), { name: "TypeError", message: RegExp(name) });
    }
  });
}

test("writer() with a batchIdPrefix repeats the same batches, which are duplicates", () =>
  withServing(async ({ serving }) => {
    const log = new EventLogClient(serving.fetch);
    for (const status of ["committed", "duplicate"]) {
      const writer = log.writer({ source: "shop", batchIdPrefix: "run", eventsMax: 2 });
      const receipts = [0, 1, 2].map((number) => writer.append(event(number)));
      await writer.close();
      for (const receipt of receipts) assert.equal((await receipt).status, status);
    }
    const ids = (await collect(log.replay())).map(({ batch_id }) => batch_id);
    assert.deepEqual(ids, ["run/1", "run/1", "run/2"]);
  }));

test("a writer repeats a batch after a lost connection, before it sends the next", () =>
  withFakeService([loseConnection, json(200, RECEIPT)], async ({ client, seen }) => {
    const writer = client.writer({ source: "shop", eventsMax: 1 });
    void writer.append(event(0));
    await writer.append(event(1));
    assert.deepEqual(seen.map(({ body }) => keysIn(body)), [["0"], ["0"], ["1"]]);
    assert.equal(seen[0]!.body, seen[1]!.body);
  }));

test("after another error, a writer sends nothing more and rejects everything", () =>
  withFakeService([refuse(409, "source_retired")], async ({ client, seen }) => {
    const writer = client.writer({ source: "shop", eventsMax: 1 });
    const both = [writer.append(event(0)), writer.append(event(1))];
    for (const each of both) await assert.rejects(each, { code: "source_retired" });
    await assert.rejects(writer.append(event(2)), { code: "source_retired" });
    await assert.rejects(writer.ready, { code: "source_retired" });
    await assert.rejects(writer.close(), { code: "source_retired" });
    assert.equal(seen.length, 1);
  }));

test("a writer's buffer is bounded: ready waits for room, and append() refuses without it", () =>
  withFakeService([json(200, RECEIPT)], async ({ client }) => {
    const writer = client.writer({ source: "shop", bytesMax: 1000, bufferBytesMax: 1000 });
    const large = event(0, { payload: "x".repeat(1000) });
    const first = writer.append(large);
    await assert.rejects(writer.append(large), /buffer of 1000 bytes is full; await ready/);
    await writer.ready;
    assert.deepEqual(await first, RECEIPT);
    assert.deepEqual(await writer.append(large), RECEIPT);
  }));

test("an aborted writer rejects with an AbortError", async () => {
  const abort = new AbortController();
  const stop = () => abort.abort();
  await withFakeService([stop], async ({ client }) => {
    const writer = client.writer({ source: "shop", signal: abort.signal });
    await assert.rejects(writer.append(event(0)), { name: "AbortError" });
  });
});

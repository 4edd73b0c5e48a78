/** `POST /v1/sources/retire`, and the behavior of retired sources. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { verifyEvent } from "../../src/event/verify_event.ts";
import { CONTROL_BODY_BYTES_MAX } from "../../src/limits.ts";
import { test } from "../support/tested_service.ts";
import {
  allEvents,
  assertError,
  batchWith,
  casesOf,
  commit,
  ingest,
  postRetirement,
  replayPage,
  retire,
} from "./support/api.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

test('retirement appends one event with source "system", replayed and hashed like any other', () =>
  withService(async ({ socketPath }) => {
    await commit(socketPath, batchWith({ batch_id: "1" }));
    const { last_event_id } = await commit(socketPath, batchWith({ batch_id: "2" }));
    const before = await allEvents(socketPath);
    const receipt = await retire(socketPath, "shop");
    await commit(socketPath, batchWith({ source: "shop2" }));
    assert.deepEqual((await replayPage(socketPath, "source=shop")).events, before);
    const [, , retirement, ...others] = await allEvents(socketPath);
    assert.equal(others.length, 1);
    const { event_id, observed_at: _at, content_hash: _c, event_hash: _e, ...rest } = retirement!;
    assert.deepEqual(rest, {
      source: "system",
      stream: "service.source_lifecycle",
      record_key: "shop",
      kind: "source_retired",
      payload: { v: 1, source: "shop", final_frontier: last_event_id },
      batch_id: `service/retire/shop/${last_event_id}`,
    });
    const verified = await verifyEvent(retirement!);
    assert.deepEqual(Object.values(verified), Object.values(verified).map(() => true));
    assert.deepEqual(receipt, {
      v: 1,
      status: "retired",
      source: "shop",
      final_frontier: last_event_id,
      retirement_event_id: event_id,
    });
  }));

/** The longest name yields the longest batch id of a retirement. */
const LONGEST = "s".repeat(128);

test("a repeated retirement returns already_retired with the same values, even after a restart", () =>
  withServedLog(async ({ socketPath, storage, shutDown }) => {
    await commit(socketPath, batchWith({ source: LONGEST }));
    const receipt = await retire(socketPath, LONGEST);
    const repeated = { ...receipt, status: "already_retired" };
    await commit(socketPath, batchWith({ source: "other" }));
    assert.deepEqual(await retire(socketPath, LONGEST), repeated);
    await shutDown();
    await withServedLog(async (restarted) => {
      assert.deepEqual(await retire(restarted.socketPath, LONGEST), repeated);
      assert.equal((await allEvents(restarted.socketPath)).length, 3);
    }, { storage });
  }));

test("retiring a source without committed events is source_not_found, and the source stays active", () =>
  withService(async ({ socketPath }) => {
    const reply = await postRetirement(socketPath, { source: "shop" });
    assertError(reply, "source_not_found", { source: "shop" });
    await commit(socketPath, batchWith({}));
    assert.equal((await retire(socketPath, "shop")).status, "retired");
  }));

const REFUSED = casesOf<unknown>({
  invalid_request: {
    "a body is JSON": "source=shop",
    "a body is not empty": "",
    "a body is an object": '"shop"',
    "a body has no unknown member": { source: "shop", force: true },
    "a member occurs once": '{"source":"shop","source":"shop"}',
    "source is required": { v: 1 },
    "source is a string": { source: 1 },
    "v is a number": { v: "1", source: "shop" },
  },
  invalid_source_retirement: {
    "v is 1": { v: 2, source: "shop" },
    "source is not system": { source: "system" },
    "source matches its pattern": { source: "Shop" },
    "source is not empty": { source: "" },
    "source has at most 128 bytes": { source: "a".repeat(129) },
  },
});

for (const [code, rule, body] of REFUSED) {
  test(`retire: ${rule}, otherwise ${code}`, () =>
    withService(async ({ socketPath }) => {
      await commit(socketPath, batchWith({}));
      assertError(await postRetirement(socketPath, body), code);
      assert.equal((await allEvents(socketPath)).length, 1);
    }));
}

test("retire: a 1 MiB body is accepted, and a larger one gets 413", () =>
  withService(async ({ socketPath }) => {
    await commit(socketPath, batchWith({}));
    const body = Buffer.alloc(CONTROL_BODY_BYTES_MAX, " ");
    body.write('{"source":"shop"}');
    assertError(await postRetirement(socketPath, Buffer.concat([body, body])), "body_too_large");
    const padded = await postRetirement(socketPath, body);
    assert.equal(padded.json().status, "retired");
  }));

test("a retirement that races with batches follows every committed batch", () =>
  withService(async ({ socketPath }) => {
    await commit(socketPath, batchWith({ batch_id: "first" }));
    const batches = Array.from({ length: 10 }, (_, n) => batchWith({ batch_id: `${n}` }));
    const [receipt, ...replies] = await Promise.all([
      retire(socketPath, "shop"),
      ...batches.map((batch) => ingest(socketPath, batch)),
    ]);
    const events = await allEvents(socketPath);
    const ofShop = events.filter(({ source }) => source === "shop");
    assert.equal(ofShop.length, 1 + replies.filter((reply) => reply.status === 200).length);
    assert.equal(receipt.final_frontier, ofShop.at(-1)!.event_id);
    assert.equal(receipt.retirement_event_id, events.at(-1)!.event_id);
    const { final_frontier, retirement_event_id } = receipt;
    for (const reply of replies.filter((reply) => reply.status !== 200)) {
      const context = { source: "shop", final_frontier, retirement_event_id };
      assertError(reply, "source_retired", context);
    }
  }));

import assert from "node:assert/strict";
import { test } from "node:test";
import { HistoryChain } from "../../src/event/chain.ts";
import { batchDigest, sealEvent } from "../support/prepared.ts";
import {
  BATCH_DIGEST,
  EVENT_HASHES,
  EVENT_IDS,
  EVENTS,
  HEADS,
  IDENTITY,
  SINGLE_DIGEST,
} from "./support/worked_example.ts";

test("encodeBatch() follows the worked example", () => {
  EVENTS.forEach((event, index) => {
    assert.equal(sealEvent(IDENTITY, event, EVENT_IDS[index]!).eventHash, EVENT_HASHES[index]);
  });
});

test("encodeBatch() computes the digests of the worked example", () => {
  assert.equal(batchDigest("crm", EVENTS), BATCH_DIGEST);
  assert.equal(batchDigest("crm", EVENTS.slice(1)), SINGLE_DIGEST);
});

test("HistoryChain continues the chain of the worked example", () => {
  const chain = new HistoryChain(HEADS[0]);
  chain.append(EVENT_HASHES[1]!);
  assert.equal(chain.head, HEADS[1]);
});

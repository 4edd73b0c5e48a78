/** Reads at the end of the log while batches are committed, on a real disk. */
import assert from "node:assert/strict";
import { withServing } from "../support/deployment.ts";
import { request } from "../support/http_client.ts";
import { test } from "../support/tested_service.ts";
import { batchWith, commit, event } from "./support/api.ts";

/** A payload that takes many reads, so that commits occur between them. */
const LARGE_PAYLOAD = "x".repeat(8 * 1024 * 1024);
const ROUNDS = 5;
const COMMITS_PER_ROUND = 10;
const READERS = 3;

test("commits and readers of the tail do not block each other", () =>
  withServing(async (deployment) => {
    const { socketPath } = deployment;
    await commit(socketPath, batchWith({ events: [event({ payload: LARGE_PAYLOAD })] }));
    for (let round = 0; round < ROUNDS; round++) {
      const readings = Array.from(
        { length: READERS },
        () => request(socketPath, { path: "/v1/events?limit=1" }),
      );
      for (let index = 0; index < COMMITS_PER_ROUND; index++) {
        await commit(socketPath, batchWith({ batch_id: `${round}/${index}` }));
      }
      for (const reply of await Promise.all(readings)) {
        const page = reply.json() as { events: { payload: unknown }[] };
        assert.equal(page.events.length, 1);
        assert.ok(page.events[0]!.payload === LARGE_PAYLOAD, "the event is returned as sent");
      }
    }
    await deployment.stop();
    await deployment.verify();
  }));

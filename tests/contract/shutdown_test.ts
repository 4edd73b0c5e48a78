/** Shutdown and disconnects: accepted requests complete, and no request waits forever. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { RawConnection } from "../support/raw_client.ts";
import { gateAt } from "../support/storage_faults.ts";
import { allEvents, batchWith, commit, ingest } from "./support/api.ts";
import { get, post } from "./support/raw_requests.ts";
import { withServedLog } from "./support/served_log.ts";

test("a shutdown refuses new work and completes pending requests with Connection: close", () =>
  withServedLog(async ({ socketPath, storage, shutDown }) => {
    const busy = await RawConnection.open(socketPath);
    const idle = await RawConnection.open(socketPath, get("/v1/events"));
    await idle.readResponse();
    const gate = gateAt("sync");
    storage.hook = gate.hook;
    await busy.write(post("/v1/events", batchWith({})));
    await gate.reached;
    const down = shutDown();
    await assert.rejects(request(socketPath), { code: /^(ENOENT|ECONNREFUSED)$/ });
    await idle.write(get("/v1/events"));
    const late = await idle.readResponse();
    assert.equal(late?.headers.connection ?? "close", "close");
    gate.open();
    const response = await busy.readResponse();
    assert.equal(JSON.parse(response!.body).status, "committed");
    assert.equal(response!.headers.connection, "close");
    await Promise.all([busy.ended(), idle.ended(), down]);
    assert.ok(!existsSync(socketPath));
  }));

test("a queued mutation completes after its client has disconnected, and a retry is a duplicate", () =>
  withServedLog(async ({ socketPath, storage, reports }) => {
    const gate = gateAt("sync");
    storage.hook = gate.hook;
    const first = await RawConnection.open(socketPath);
    await first.write(post("/v1/events", batchWith({ batch_id: "first" })));
    await gate.reached;
    const second = await RawConnection.open(socketPath);
    await second.write(post("/v1/events", batchWith({ batch_id: "second" })));
    // The response to a later request shows that the batch has been read.
    for (let turns = 0; turns < 20; turns++) await request(socketPath, { path: "/v1/none" });
    for (const connection of [first, second]) connection.destroy();
    gate.open();
    const third = await commit(socketPath, batchWith({ batch_id: "third" }));
    const events = await allEvents(socketPath);
    assert.deepEqual(events.map(({ batch_id }) => batch_id), ["first", "second", "third"]);
    assert.equal(events[2]!.event_id, third.first_event_id);
    const retried = await ingest(socketPath, batchWith({ batch_id: "second" }));
    assert.equal(retried.json().status, "duplicate");
    assert.deepEqual(reports, []);
  }));

/** A replay ends when its client has gone, and is served to one that only half-closes. */
import assert from "node:assert/strict";
import { type ClientState, SCAN_PAUSE_BYTES } from "../../src/log/read/event_scan.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import { alteredLog } from "../support/stub_log.ts";
import { TESTED_EXECUTABLE } from "../../tools/support/runtimes.ts";
import { RawConnection } from "../support/raw_client.ts";
import { test } from "../support/tested_service.ts";
import { batchWith, commit } from "./support/api.ts";
import { withServedLog } from "./support/served_log.ts";

const REPLAY = "GET /v1/events?kind=none HTTP/1.1\r\nHost: x\r\n\r\n";
/** Each batch takes more than a block. */
const PAYLOAD = "x".repeat(200_000);
const BLOCKS = 60;

/** The tests watch the service's scans. */
const IN_PROCESS = {
  skip: TESTED_EXECUTABLE === undefined ? false : "needs a service in this process",
};

/** Runs a replay. @returns what it learned of its client, at least once for each block. */
async function withReplay(
  leave: (connection: RawConnection) => Promise<void> | void,
  ahead: string = "",
): Promise<ClientState[]> {
  const states: ClientState[] = [];
  const begun = Promise.withResolvers<void>();
  const watched = (service: EventLogService) =>
    alteredLog(service, {
      replay: (query, client) =>
        service.replay(query, () => {
          const state = client!();
          states.push(state);
          begun.resolve();
          return state;
        }),
    });
  await withServedLog(async ({ socketPath }) => {
    for (let n = 0; n < BLOCKS; n++) {
      const events = [{ stream: "s", record_key: "k", kind: "other", payload: PAYLOAD }];
      await commit(socketPath, batchWith({ batch_id: `${n}`, events }));
    }
    const connection = await RawConnection.open(socketPath, REPLAY + ahead);
    await leave(connection);
    await begun.promise;
    connection.destroy();
  }, { log: watched });
  return states;
}

for (const [title, ahead] of [["", ""], [" and has sent ahead", "GET"]] as const) {
  test(
    `a replay ends before its next blocks if its client has gone${title}`,
    IN_PROCESS,
    async () => {
      const states = await withReplay((connection) => connection.destroy(), ahead);
      // How many blocks precede the news depends on the runtime.
      const news = states.findIndex((state) => state !== "here");
      // A scan with a client pauses less often.
      assert.ok(states.length - news < SCAN_PAUSE_BYTES / PAYLOAD.length, `${states}`);
      assert.ok(news >= 0 && states.length < BLOCKS, `${states}`);
    },
  );
}

test("a replay is served to a client that has half-closed the connection", IN_PROCESS, async () => {
  const states = await withReplay(async (connection) => {
    connection.endInput();
    const response = await connection.readResponse();
    assert.equal(response?.status, 200);
    assert.deepEqual(JSON.parse(response!.body).events, []);
  });
  assert.ok(!states.includes("gone"));
  assert.ok(states.length > BLOCKS);
});

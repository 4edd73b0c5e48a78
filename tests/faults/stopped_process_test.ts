/**
 * Stops the real service for a while, as a debugger, a paused container or a suspended machine
 * does, while the clients of a soak use it and other connections are in every state. After it
 * resumes, nothing is lost and no client has been disconnected. STOP_MS sets the duration.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import type { Scene } from "../../tools/soak/disturbances.ts";
import { batchWith } from "../contract/support/api.ts";
import { RawConnection } from "../support/raw_client.ts";
import { until } from "../support/scenes.ts";
import { soakThrough } from "./support/soaked.ts";

const STOP_MS = Number(process.env.STOP_MS ?? 3000);
const GET = "GET /v1/streams HTTP/1.1\r\nHost: x\r\n\r\n";
const BODY = JSON.stringify(batchWith({ source: "stopped", batch_id: "slow" }));
const POST = `POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY.length}\r\n\r\n`;

/** Bytes that each connection sends before and after the stop. */
const CONNECTIONS: [before: string, after: string][] = [
  ["", GET],
  [GET.slice(0, 30), GET.slice(30)],
  [POST + BODY.slice(0, 10), BODY.slice(10)],
];

async function stopInTheMiddle(scene: Scene): Promise<void> {
  const { served, ledger, tally, failing } = scene;
  await until(scene, () => tally.of("batches") > 0 && tally.of("followed") > 0);
  ledger.mayHold = ([event]) => event!.source === "stopped";
  const connections: [RawConnection, string][] = [];
  for (const [before, after] of CONNECTIONS) {
    const connection = await RawConnection.open(served.socketPath);
    await connection.write(GET);
    assert.equal((await connection.readResponse())?.status, 200);
    await connection.write(before);
    connections.push([connection, after]);
  }
  await served.freeze(STOP_MS, failing);
  for (const [connection, after] of connections) {
    await connection.write(after);
    const response = await connection.readResponse();
    assert.equal(response?.status, 200, `${JSON.stringify(after)}: ${response?.body}`);
    connection.destroy();
  }
}

test(`serve resumes unharmed after being stopped for ${STOP_MS} ms`, async () => {
  await soakThrough([stopInTheMiddle]);
});

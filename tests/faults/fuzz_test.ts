/**
 * Malformed requests to the real service while the clients of a soak use it. Each request gets a
 * response, or its connection is closed. The process neither exits nor reports an error. The log
 * contains everything acknowledged, and nothing that was never sent. FUZZ_REQUESTS sets the number
 * of requests. Round N of FUZZ_SEED is round 0 of FUZZ_SEED + N.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { CLIENT_SOCKETS_MAX } from "../../src/client/unix_fetch.ts";
import type { Scene } from "../../tools/soak/disturbances.ts";
import { SeededRandom } from "../../tools/support/random.ts";
import { openFiles } from "../support/open_files.ts";
import { FuzzClient, type FuzzRecord } from "./support/fuzz_client.ts";
import { SentMutations } from "./support/fuzz_sent.ts";
import { soakThrough } from "./support/soaked.ts";

const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 1500);
const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
/** Maximum number of requests per round. Each round starts with an empty log. */
const ROUND_REQUESTS_MAX = 3000;
const CLIENTS = 8;
/** Prefix of the fuzzing clients' sources. */
const FUZZED = "x.c";
/** Lines that a server prints when nothing has failed. */
const CALM_LINES = /^(opened .*|serving .*|shutting down)$/;
const CLOSING_MS_MAX = 30_000;

function complaints({ served }: Scene): string[] {
  const lines = served.output.stderr.split("\n");
  return lines.filter((line) => line !== "" && !CALM_LINES.test(line));
}

/** Waits until the server has closed all connections from the fuzzing clients. */
async function assertNothingLeftOpen({ served }: Scene): Promise<void> {
  const deadlineMs = performance.now() + CLOSING_MS_MAX;
  const sockets = () => openFiles(served.pid!).filter((target) => target.startsWith("socket:"));
  // The soak's clients keep their own sockets open.
  while (sockets().length > CLIENT_SOCKETS_MAX) {
    assert.ok(performance.now() < deadlineMs, "sockets of disconnected clients stay open");
    await served.client.streams();
  }
}

async function fuzz(
  scene: Scene,
  { round, requests, counts }: { round: number; requests: number; counts: Map<string, number> },
): Promise<SentMutations> {
  const sent = new SentMutations();
  scene.ledger.mayHold = (events) => sent.hold(events);
  const record: FuzzRecord = {
    socketPath: scene.served.socketPath,
    sent,
    counts,
    assertServerCalm: () => assert.deepEqual(complaints(scene), []),
  };
  const clients = Array.from({ length: CLIENTS }, (_, client) => {
    const seed = Math.imul(SEED + round, 0x9e3779b1) ^ Math.imul(client + 1, 0x85ebca6b);
    return new FuzzClient(record, new SeededRandom(seed), `${FUZZED}${client}`);
  });
  try {
    await Promise.all(clients.map((client) => client.run(Math.ceil(requests / CLIENTS))));
  } catch (error) {
    const said = complaints(scene).join("\n");
    const reason = error instanceof Error ? error.message : String(error);
    const where = `round ${round} of FUZZ_SEED=${SEED}; the server printed: ${said || "nothing"}`;
    throw new Error(`${reason}\n${where}`, { cause: error });
  } finally {
    for (const client of clients) client.close();
  }
  for await (const { record_key: source } of scene.served.client.replay({ source: "system" })) {
    const isAskedFor = !source.startsWith(FUZZED) || sent.hasRetirement(source);
    assert.ok(isAskedFor, `the retirement of ${source} was requested`);
  }
  await assertNothingLeftOpen(scene);
  record.assertServerCalm();
  return sent;
}

const title = `serve responds to ${REQUESTS} malformed requests or disconnects (FUZZ_SEED=${SEED})`;
test(title, async (context) => {
  const counts = new Map<string, number>();
  for (let done = 0, round = 0; done < REQUESTS; done += ROUND_REQUESTS_MAX, round++) {
    const requests = Math.min(ROUND_REQUESTS_MAX, REQUESTS - done);
    let sent: SentMutations | undefined;
    await soakThrough([async (scene) => {
      sent = await fuzz(scene, { round, requests, counts });
    }]);
    sent!.assertAllHeld();
  }
  const table = [...counts].sort(([a], [b]) => a < b ? -1 : 1).map((row) => row.join(": "));
  context.diagnostic(`responses: ${table.join(", ")}`);
  for (const status of ["200", "400", "404", "405", "409", "415"]) {
    assert.ok(counts.has(status), `some requests get ${status}`);
  }
});

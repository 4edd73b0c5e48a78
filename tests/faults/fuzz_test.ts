/**
 * The real service under spoiled requests: each is answered or its connection closed, the process
 * neither ends nor complains, and the log holds what was acknowledged and nothing that nobody sent.
 * FUZZ_REQUESTS and FUZZ_SEED say how many and which; round N of a seed is round 0 of seed + N.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import type { CommittedEvent } from "../../src/event/types.ts";
import { SeededRandom } from "../../tools/support/random.ts";
import type { Serving } from "../../tools/support/program.ts";
import { withServing } from "../support/deployment.ts";
import { FuzzClient, type FuzzRecord } from "./support/fuzz_client.ts";
import { AcknowledgedReceipts } from "./support/fuzz_log_check.ts";
import { SentRequests } from "./support/fuzz_sent.ts";

const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 3000);
const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
/** Requests to one server: then its log is checked, and the next one begins an empty log. */
const ROUND_REQUESTS_MAX = 3000;
const CLIENTS = 8;
/** What a server says that nothing went wrong with. */
const CALM_LINES = /^(serving .*|shutting down)$/;

function complaints({ output }: Serving): string[] {
  return output.stderr.split("\n").filter((line) => line !== "" && !CALM_LINES.test(line));
}

async function readAll({ fetch }: Serving): Promise<CommittedEvent[]> {
  const events: CommittedEvent[] = [];
  for (let after = "";;) {
    const response = await fetch(`/v1/events?limit=100000${after}`);
    const page = await response.json();
    events.push(...page.events);
    if (page.next_after === page.snapshot_through_event_id) return events;
    after = `&after=${page.next_after}`;
  }
}

/** Sockets of a process; null where the kernel does not tell. */
function openSockets({ child }: Serving): number | null {
  const folder = `/proc/${child.pid}/fd`;
  return existsSync(folder)
    ? readdirSync(folder).filter((fd) => isSocket(folder, fd)).length
    : null;
}

/** A descriptor may be closed while it is looked at. */
function isSocket(folder: string, fd: string): boolean {
  try {
    return readlinkSync(`${folder}/${fd}`).startsWith("socket:");
  } catch {
    return false;
  }
}

/** Waits until the server has closed what its clients have left. */
async function assertNothingLeftOpen(serving: Serving, before: number | null): Promise<void> {
  if (before === null) return;
  const deadlineMs = performance.now() + 30_000;
  while (openSockets(serving)! > before) {
    assert.ok(performance.now() < deadlineMs, "sockets of clients that have gone stay open");
    await (await serving.fetch("/v1/streams?limit=1")).arrayBuffer();
  }
}

interface Round {
  number: number;
  requests: number;
  counts: Map<string, number>;
}

/** @returns events of the log at the end. */
function fuzzRound({ number: round, requests, counts }: Round): Promise<number> {
  return withServing(async (deployment) => {
    const { serving, socketPath } = deployment;
    const record: FuzzRecord = {
      socketPath,
      sent: new SentRequests(),
      acknowledged: new AcknowledgedReceipts(),
      counts,
      assertServerCalm: () => assert.deepEqual(complaints(serving), []),
    };
    const clients = Array.from({ length: CLIENTS }, (_, client) => {
      const seed = Math.imul(SEED + round, 0x9e3779b1) ^ Math.imul(client + 1, 0x85ebca6b);
      return new FuzzClient(record, new SeededRandom(seed), `c${client}`);
    });
    try {
      const sockets = openSockets(serving);
      await Promise.all(clients.map((client) => client.run(Math.ceil(requests / CLIENTS))));
      for (const client of clients) client.close();
      await assertNothingLeftOpen(serving, sockets);
      const events = await readAll(serving);
      await record.acknowledged.check(events, record.sent);
      await deployment.stop();
      record.assertServerCalm();
      const { events_checked, orphans, remnants } = await deployment.verify();
      assert.deepEqual([events_checked, orphans, remnants], [events.length, [], []]);
      return events.length;
    } catch (error) {
      const said = complaints(serving).join("\n");
      const reason = error instanceof Error ? error.message : String(error);
      const where = `round ${round} of FUZZ_SEED=${SEED}; the server said: ${said || "nothing"}`;
      throw new Error(`${reason}\n${where}`, { cause: error });
    } finally {
      for (const client of clients) client.close();
    }
  });
}

const title = `serve answers or closes ${REQUESTS} spoiled requests (FUZZ_SEED=${SEED})`;
test(title, async (context) => {
  const counts = new Map<string, number>();
  let events = 0;
  for (let done = 0, number = 0; done < REQUESTS; done += ROUND_REQUESTS_MAX, number++) {
    const requests = Math.min(ROUND_REQUESTS_MAX, REQUESTS - done);
    events += await fuzzRound({ number, requests, counts });
  }
  const table = [...counts].sort(([a], [b]) => a < b ? -1 : 1).map((row) => row.join(": "));
  context.diagnostic(`${events} events; answers: ${table.join(", ")}`);
  for (const status of ["200", "400", "404", "405", "409", "415"]) {
    assert.ok(counts.has(status), `some requests get ${status}`);
  }
});

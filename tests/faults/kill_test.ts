/**
 * The real service, killed at random moments under concurrent writers. Every acknowledged batch
 * must be there once, whole, with the ids of its receipt; every other one is absent or whole.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { Receipt } from "../../src/event/types.ts";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import {
  runCli,
  type Serving,
  signalChild,
  spawnCli,
  startServe,
  untilReported,
  withFolder,
} from "../support/cli.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../support/random.ts";

const ROUNDS = 20;
const WRITERS = 8;
/** A round is killed after so many receipts at the most, and a moment. */
const RECEIPTS_MAX = 150;
const MOMENT_MS_MAX = 5;
const SOURCES = ["shop", "crm", "erp"];
const PAYLOAD_SIZES = [0, 10, 300, 300, 3000, 300_000];

interface SubmittedEvent {
  stream: string;
  record_key: string;
  kind: string;
  payload: unknown;
}

interface Batch {
  batch_id: string;
  source: string;
  events: SubmittedEvent[];
}

/** What the clients know of all rounds, and what has been read back. */
class History {
  readonly submitted = new Map<string, Batch>();
  readonly receipts = new Map<string, Receipt>();
  readonly committed = new Map<string, CommittedEvent[]>();
  lastEventId: string | null = null;

  /** Batches that were sent and not answered. */
  get unanswered(): Batch[] {
    return [...this.submitted.values()].filter((batch) => !this.receipts.has(keyOf(batch)));
  }

  /** Takes in events in log order. */
  add(events: CommittedEvent[]): void {
    for (const event of events) {
      assert.ok(this.lastEventId === null || this.lastEventId < event.event_id, "ids increase");
      this.lastEventId = event.event_id;
      const committed = this.committed.get(keyOf(event));
      if (committed === undefined) this.committed.set(keyOf(event), [event]);
      else committed.push(event);
    }
  }

  check(): void {
    for (const [key, events] of this.committed) {
      const batch = this.submitted.get(key);
      assert.ok(batch !== undefined, `${key} was submitted`);
      const stored = events.map(({ stream, record_key, kind, payload }) => ({
        stream,
        record_key,
        kind,
        payload,
      }));
      assert.deepEqual(stored, batch.events, `${key} is there once and whole`);
    }
    for (const [key, receipt] of this.receipts) {
      const events = this.committed.get(key);
      assert.ok(events !== undefined, `${key} was acknowledged`);
      assert.equal(events[0]!.event_id, receipt.first_event_id, key);
      assert.equal(events.at(-1)!.event_id, receipt.last_event_id, key);
    }
  }
}

function keyOf({ source, batch_id }: { source: string; batch_id: string }): string {
  return `${source} ${batch_id}`;
}

function randomBatch(random: Random, batchId: string): Batch {
  const events = Array.from({ length: randomInteger(random, 1, 6) }, (_, number) => ({
    stream: "records",
    record_key: `${batchId}/${number}`,
    kind: "upserted",
    payload: { text: "x".repeat(randomItem(random, PAYLOAD_SIZES)), number },
  }));
  return { batch_id: batchId, source: randomItem(random, SOURCES), events };
}

/** Submits a batch; null when the connection is lost before the answer. */
async function submit({ fetch }: Serving, batch: Batch): Promise<Receipt | null> {
  let status: number;
  let body: unknown;
  try {
    const response = await fetch("/v1/events", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(batch),
    });
    status = response.status;
    body = await response.json();
  } catch {
    return null;
  }
  assert.equal(status, 200, JSON.stringify(body));
  return body as Receipt;
}

async function readAfter({ fetch }: Serving, after: string | null): Promise<CommittedEvent[]> {
  const events: CommittedEvent[] = [];
  for (;;) {
    const query = after === null ? "" : `&after=${after}`;
    const response = await fetch(`/v1/events?limit=100000${query}`);
    const page = await response.json();
    events.push(...page.events);
    if (page.next_after === page.snapshot_through_event_id) return events;
    after = page.next_after;
  }
}

/** Lets the writers write until the process is killed under them. */
async function writeAndKill(
  serving: Serving,
  history: History,
  random: Random,
  round: number,
): Promise<void> {
  let remainingReceipts = randomInteger(random, 1, RECEIPTS_MAX);
  const momentMs = random() * MOMENT_MS_MAX;
  const write = async (writer: number) => {
    for (let number = 0;; number++) {
      const batch = randomBatch(random, `${round}-${writer}-${number}`);
      history.submitted.set(keyOf(batch), batch);
      const receipt = await submit(serving, batch);
      if (receipt === null) return;
      assert.equal(receipt.status, "committed");
      history.receipts.set(keyOf(batch), receipt);
      remainingReceipts -= 1;
      if (remainingReceipts === 0) setTimeout(() => void serving.stop("SIGKILL"), momentMs);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  const exit = await serving.exited;
  assert.equal(exit.signal, "SIGKILL", exit.stderr);
}

/** Submits again what got no answer, and tells the receipts. */
async function retryUnanswered(serving: Serving, history: History): Promise<void> {
  for (const batch of history.unanswered) {
    const receipt = await submit(serving, batch);
    assert.ok(receipt !== null);
    const isCommitted = history.committed.has(keyOf(batch));
    assert.equal(receipt.status, isCommitted ? "duplicate" : "committed");
    history.receipts.set(keyOf(batch), receipt);
  }
}

/** Kills a start somewhere between its first step and its last. */
async function killStart(dir: string, random: Random): Promise<void> {
  const starting = spawnCli(["--config", join(dir, "service.toml"), "serve"]);
  if (random() < 0.5) await untilReported(starting, "serving");
  else await new Promise((resolve) => setTimeout(resolve, random() * 150));
  signalChild(starting.child, "SIGKILL");
  await starting.exited;
}

/** Starts the service, runs `use`, and leaves no process behind. */
async function withServing(dir: string, use: (serving: Serving) => Promise<void>): Promise<void> {
  const serving = await startServe(dir);
  try {
    await use(serving);
  } finally {
    const { exitCode, signalCode } = serving.child;
    if (exitCode === null && signalCode === null) await serving.stop("SIGKILL");
  }
}

const seed = testSeed();
test(`serve keeps what it acknowledged through ${ROUNDS} kills (SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const history = new History();
  const readAndCheck = async (serving: Serving) => {
    history.add(await readAfter(serving, history.lastEventId));
    history.check();
  };
  await withFolder(async (dir) => {
    assert.equal((await runCli(["init", dir])).code, 0);
    for (let round = 0; round < ROUNDS; round++) {
      if (random() < 0.25) await killStart(dir, random);
      await withServing(dir, async (serving) => {
        await readAndCheck(serving);
        await retryUnanswered(serving, history);
        await writeAndKill(serving, history, random, round);
      });
    }
    await withServing(dir, async (serving) => {
      await readAndCheck(serving);
      await retryUnanswered(serving, history);
      assert.equal((await serving.stop()).code, 0);
    });
    await withServing(dir, async (serving) => {
      await readAndCheck(serving);
      assert.equal(history.committed.size, history.submitted.size);
      assert.equal((await serving.stop()).code, 0);
    });
  });
});

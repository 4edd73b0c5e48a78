/**
 * A clock that is set back, stands, or leaps, between batches and across restarts, kills and
 * sealings: event ids only increase, so a consumer that goes on from its last position sees every
 * event once; a batch has one time of observation, and is answered as before when it comes again.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isEventId } from "../../src/event/event_id.ts";
import type { CommittedEvent, Receipt } from "../../src/event/types.ts";
import { verifyLog } from "../../src/log/verify/verify.ts";
import type { EventLogService } from "../../src/service/event_log_service.ts";
import { preparedBatch } from "../support/prepared.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../../tools/support/random.ts";
import { sealAll } from "../support/sealing.ts";
import { anyOf } from "../support/simulated_crash.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { joinPieces, TEST_TIME_MS } from "../support/test_log.ts";
import { openWatchedService } from "../support/watched_log.ts";

const STEPS = 150;
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
const OBSERVED_AT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** What happens to a clock; a machine without one begins in 1970. */
const CLOCK_CHANGES: ((nowMs: number) => number)[] = [
  (nowMs) => nowMs,
  (nowMs) => nowMs + 1,
  (nowMs) => nowMs + 0.5,
  (nowMs) => nowMs - 1,
  (nowMs) => Math.max(0, nowMs - HOUR_MS),
  (nowMs) => nowMs + HOUR_MS,
  () => 0,
  () => TEST_TIME_MS,
  () => TEST_TIME_MS + 50 * YEAR_MS,
];

/** A service with a consumer that reads on from its last position after every step. */
class Run {
  readonly random: Random;
  readonly receipts = new Map<string, Receipt>();
  readonly consumed: CommittedEvent[] = [];
  #nowMs = TEST_TIME_MS;
  #disk = new SimulatedDisk();
  #service!: EventLogService;

  constructor(random: Random) {
    this.random = random;
  }

  async open(): Promise<void> {
    this.#service = await openWatchedService({
      storage: this.#disk,
      clockMs: () => this.#nowMs,
      randomBytes: (into) =>
        void into.forEach((_, at) => into[at] = randomInteger(this.random, 0, 255)),
      report: () => {},
    });
  }

  changeClock(): void {
    this.#nowMs = randomItem(this.random, CLOCK_CHANGES)(this.#nowMs);
  }

  async append(batchId: string): Promise<void> {
    const events = Array.from({ length: randomInteger(this.random, 1, 3) }, () => ({}));
    this.receipts.set(batchId, await this.#service.append(preparedBatch(batchId, { events })));
  }

  async restart(): Promise<void> {
    await this.#service.close();
    if (this.random() < 0.3) await sealAll(this.#disk);
    await this.open();
  }

  async kill(): Promise<void> {
    this.#disk = this.#disk.crash(anyOf(this.random));
    await this.open();
  }

  async consume(): Promise<void> {
    const after = this.consumed.at(-1)?.event_id;
    const replay = this.#service.replay({ after, filter: {}, limitEvents: 1000 });
    const events: CommittedEvent[] = JSON.parse(`[${await joinPieces(replay)}]`);
    this.consumed.push(...events);
  }

  /** Every batch comes again and is answered as it was. */
  async repeatAll(): Promise<void> {
    for (const [batchId, receipt] of this.receipts) {
      const events = Array.from({ length: receipt.events }, () => ({}));
      const again = await this.#service.append(preparedBatch(batchId, { events }));
      assert.deepEqual(again, { ...receipt, status: "duplicate" });
    }
  }

  async verify(): Promise<void> {
    await this.#service.close();
    const { failure } = await verifyLog(this.#disk, { chain: true });
    assert.equal(failure, null);
  }
}

/** That the consumer has every acknowledged event, in the order of its ids, once. */
function assertConsumed({ consumed, receipts }: Run): void {
  const ids = consumed.map(({ event_id }) => event_id);
  for (const [place, id] of ids.entries()) {
    assert.ok(isEventId(id) && (place === 0 || ids[place - 1]! < id), `${ids[place - 1]} ${id}`);
  }
  const groups = Map.groupBy(consumed, ({ batch_id }) => batch_id);
  assert.deepEqual([...groups.keys()], [...receipts.keys()]);
  for (const [batchId, { first_event_id, last_event_id, events }] of receipts) {
    const group = groups.get(batchId)!;
    assert.equal(group.length, events);
    assert.deepEqual([group[0]!.event_id, group.at(-1)!.event_id], [first_event_id, last_event_id]);
    assert.equal(new Set(group.map(({ observed_at }) => observed_at)).size, 1, batchId);
    assert.match(group[0]!.observed_at, OBSERVED_AT);
  }
}

const seed = testSeed();
const TITLE =
  `ids only increase and consumers miss nothing while the clock goes anywhere (SEED=${seed})`;
test(TITLE, async () => {
  const run = new Run(seededRandom(seed));
  await run.open();
  for (let step = 0; step < STEPS; step++) {
    if (run.random() < 0.5) run.changeClock();
    const choice = run.random();
    if (choice < 0.1) await run.restart();
    else if (choice < 0.2) await run.kill();
    else await run.append(`${step}`);
    await run.consume();
  }
  assertConsumed(run);
  await run.repeatAll();
  await run.verify();
});

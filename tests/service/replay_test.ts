/** A finite replay: its page, and where the next one starts (contract section 5). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { REPLAY_RESPONSE_BYTES_MAX } from "../../src/limits.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import type { ReplayQuery } from "../../src/log/read/event_scan.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { joinPieces } from "../support/test_log.ts";
import { openTestService } from "../support/test_service.ts";

const BEFORE_ALL = "00000000-0000-7000-8000-000000000000";
const AFTER_ALL = "ffffffff-ffff-7fff-bfff-ffffffffffff";

interface Page {
  eventIds: string[];
  lastEventId: string | null;
  nextAfter: string | null;
  through: string | null;
}

async function page(service: EventLogService, query: Partial<ReplayQuery> = {}): Promise<Page> {
  const replay = service.replay({ after: undefined, filter: {}, limitEvents: 1000, ...query });
  const events: { event_id: string }[] = JSON.parse(`[${await joinPieces(replay)}]`);
  return {
    eventIds: events.map((event) => event.event_id),
    lastEventId: replay.lastEventId,
    nextAfter: replay.nextAfter,
    through: replay.snapshotThroughEventId,
  };
}

/** A log of five events; the first and the fourth are deletions. */
async function fiveEvents(): Promise<{ service: EventLogService; ids: string[] }> {
  const { service } = await openTestService(new SimulatedDisk());
  const deleted = { kind: "deleted" };
  await service.append(preparedBatch("a", { events: [deleted, {}] }));
  await service.append(preparedBatch("b", { events: [{}, deleted, {}] }));
  return { service, ids: (await page(service)).eventIds };
}

test("replay() of an empty log gives nothing and repeats the request's after", async () => {
  const { service } = await openTestService(new SimulatedDisk());
  for (const after of [undefined, BEFORE_ALL, AFTER_ALL]) {
    assert.deepEqual(await page(service, { after }), {
      eventIds: [],
      lastEventId: null,
      nextAfter: after ?? null,
      through: null,
    });
  }
});

test("replay() goes on at the last event when a limit ended it, else at the frontier", async () => {
  const { service, ids } = await fiveEvents();
  const [id1, id2, , id4, id5] = ids as [string, string, string, string, string];
  const unknown = id2.slice(0, -3) + "fff";
  const deleted = { kind: "deleted" };
  const none = { kind: "none" };
  const cases: [query: Partial<ReplayQuery>, eventIds: string[], nextAfter: string][] = [
    [{}, ids, id5],
    [{ limitEvents: 6 }, ids, id5],
    [{ limitEvents: 5 }, ids, id5],
    [{ limitEvents: 4 }, ids.slice(0, 4), id4],
    [{ limitEvents: 1 }, [id1], id1],
    [{ after: BEFORE_ALL }, ids, id5],
    [{ after: id1 }, ids.slice(1), id5],
    [{ after: id4 }, [id5], id5],
    [{ after: id4, limitEvents: 1 }, [id5], id5],
    [{ after: id5 }, [], id5],
    [{ after: unknown }, [], unknown],
    [{ after: AFTER_ALL }, [], AFTER_ALL],
    [{ filter: deleted }, [id1, id4], id5],
    [{ filter: deleted, limitEvents: 3 }, [id1, id4], id5],
    [{ filter: deleted, limitEvents: 2 }, [id1, id4], id4],
    [{ filter: deleted, limitEvents: 1 }, [id1], id1],
    [{ filter: deleted, after: id1 }, [id4], id5],
    [{ filter: deleted, after: id4 }, [], id5],
    [{ filter: none }, [], id5],
    [{ filter: none, after: id2, limitEvents: 1 }, [], id5],
    [{ filter: none, after: AFTER_ALL }, [], AFTER_ALL],
  ];
  for (const [query, eventIds, nextAfter] of cases) {
    assert.deepEqual(await page(service, query), {
      eventIds,
      lastEventId: eventIds.at(-1) ?? null,
      nextAfter,
      through: id5,
    }, JSON.stringify(query));
  }
});

test("replay() shows the snapshot it was admitted with", async () => {
  const { service, ids } = await fiveEvents();
  const early = service.replay({ after: undefined, filter: {}, limitEvents: 1000 });
  await service.append(preparedBatch("c"));
  const late = await page(service, { after: ids.at(-1) });
  assert.equal(JSON.parse(`[${await joinPieces(early)}]`).length, 5);
  assert.equal(early.snapshotThroughEventId, ids.at(-1));
  assert.equal(early.nextAfter, ids.at(-1));
  assert.equal(late.eventIds.length, 1);
});

test("replay() ends a page at the response bound, but never before one event", async () => {
  const { service } = await openTestService(new SimulatedDisk());
  const sizes = [REPLAY_RESPONSE_BYTES_MAX + 1, 10, 9_000_000, 8_000_000, 10];
  for (const [number, size] of sizes.entries()) {
    const events = [{ payload: "x".repeat(size) }];
    await service.append(preparedBatch(`b${number}`, { events }));
  }
  const pageSizes: number[] = [];
  let after: string | undefined;
  for (;;) {
    const { eventIds, lastEventId, nextAfter, through } = await page(service, { after });
    pageSizes.push(eventIds.length);
    assert.equal(nextAfter, lastEventId);
    if (nextAfter === through) break;
    after = nextAfter!;
  }
  assert.deepEqual(pageSizes, [1, 2, 2]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventLogService } from "../../src/service/event_log.ts";
import type { StreamsQuery } from "../../src/service/streams.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { outcomeOf } from "../support/outcome.ts";
import {
  ALL_STREAMS,
  countedThrough,
  replayAll,
  serviceWithStreams,
} from "../support/stream_listing.ts";
import { submit, submittedBatch } from "../support/submitted.ts";
import { openTestService } from "../support/test_service.ts";

/** Reads the page for `query` and all later ones, calling `between` before each later page. */
async function takePages(
  service: EventLogService,
  query: StreamsQuery,
  between: (() => Promise<EventLogService>) | null = null,
) {
  const first = await service.streams(query);
  const rows = [...first.streams];
  const through = first.snapshot_through_event_id ?? undefined;
  for (let next = first.next_after; next !== null;) {
    const serving = between === null ? service : await between();
    const [source, stream] = next.split("/") as [string, string];
    const page = await serving.streams({ ...query, after: { source, stream }, through });
    assert.equal(page.snapshot_through_event_id, first.snapshot_through_event_id);
    assert.ok(page.streams.length > 0 && page.streams.length <= query.limit);
    rows.push(...page.streams);
    next = page.next_after;
  }
  return { rows, through };
}

test("streams() returns a next page only if there is one", async () => {
  const { service } = await serviceWithStreams();
  const page = (limit: number) => service.streams({ ...ALL_STREAMS, source: "a", limit });
  assert.equal((await page(4)).next_after, "a/x.y");
  assert.equal((await page(5)).next_after, null);
  assert.equal((await page(6)).next_after, null);
  await service.close();
});

test("streams() returns all pages as of the first while batches are committed", async () => {
  for (const limit of [1, 2, 3, 7]) {
    for (const source of [undefined, "a"]) {
      const { service } = await serviceWithStreams();
      const before = await replayAll(service);
      let batches = 0;
      const { rows, through } = await takePages(
        service,
        { ...ALL_STREAMS, limit, source },
        async () => {
          batches += 1;
          await submit(service, submittedBatch("a", `more-${batches}`, ["x", `a${batches}`, "zz"]));
          await submit(service, submittedBatch("0", `more-${batches}`));
          return service;
        },
      );
      const expected = countedThrough(before, through!);
      assert.deepEqual(
        rows,
        expected.filter((row) => source === undefined || row.source === source),
      );
      await service.close();
    }
  }
});

test("streams() continues paging after the log is reopened", async () => {
  const storage = new SimulatedDisk();
  let { service } = await serviceWithStreams(storage);
  const before = await replayAll(service);
  const { rows, through } = await takePages(service, { ...ALL_STREAMS, limit: 2 }, async () => {
    await submit(service, submittedBatch("a", `more-${storage.operations.length}`, ["x", "y"]));
    await service.close();
    service = (await openTestService(storage)).service;
    return service;
  });
  assert.deepEqual(rows, countedThrough(before, through!));
  await service.close();
});

test("streams() rejects an unknown anchor: before, between or after the events", async () => {
  const { service, ends } = await serviceWithStreams();
  const last = ends.at(-1)!;
  const before = ends[0]!.replace(/^.{8}/, "00000000");
  const between = ends[0]!.slice(0, -4) + "ffff";
  assert.ok(ends[0]! < between && between < ends[1]!);
  const behind = last.replace(/^.{8}/, "ffffffff");
  for (const through of [before, between, behind]) {
    const refused = { status: 400, body: { error: "stream_anchor_unavailable" } };
    assert.deepEqual(await outcomeOf(service.streams({ ...ALL_STREAMS, through })), refused);
  }
  await service.close();
  const { service: empty } = await openTestService(new SimulatedDisk());
  const { body } = await outcomeOf(empty.streams({ ...ALL_STREAMS, through: last }));
  assert.equal(body.error, "stream_anchor_unavailable");
  await empty.close();
});

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
import { STREAM_SNAPSHOTS_MAX } from "../../src/service/streams.ts";

/** Takes page after page from `first` on; `between` runs before each but the first. */
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

test("streams() counts every stream at the last event, those of the system too", async () => {
  const { service } = await serviceWithStreams();
  await service.retire("a.b");
  const events = await replayAll(service);
  const last = events.at(-1)!.event_id;
  const streams = countedThrough(events, last);
  assert.equal(streams.at(-1)!.stream, "service.source_lifecycle");
  assert.deepEqual(
    streams.slice(0, -1).map((row) => `${row.source}/${row.stream} ${row.event_count}`),
    ["a/w 1", "a/x 2", "a/x-y 1", "a/x.y 1", "a/z 1", "a-b/x 2", "a-b/y 2", "a.b/x 1"],
  );
  const page = { v: 1, streams, next_after: null, snapshot_through_event_id: last };
  assert.deepEqual(await service.streams(ALL_STREAMS), page);
  await service.close();
});

test("streams() names a next page only when there is one", async () => {
  const { service } = await serviceWithStreams();
  const page = (limit: number) => service.streams({ ...ALL_STREAMS, source: "a", limit });
  assert.equal((await page(4)).next_after, "a/x.y");
  assert.equal((await page(5)).next_after, null);
  assert.equal((await page(6)).next_after, null);
  await service.close();
});

test("streams() gives all pages as of the first one while batches are committed", async () => {
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

test("streams() goes on with the pages after the log was opened again", async () => {
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

test("streams() describes the log as of any of its events", async () => {
  const { service } = await serviceWithStreams();
  const events = await replayAll(service);
  for (const { event_id: through } of events) {
    const { streams, snapshot_through_event_id } = await service.streams({
      ...ALL_STREAMS,
      through,
    });
    assert.deepEqual(streams, countedThrough(events, through));
    assert.equal(snapshot_through_event_id, through);
    const paged = await takePages(service, { ...ALL_STREAMS, through, limit: 1 });
    assert.deepEqual(paged.rows, streams);
  }
  await service.close();
});

test("streams() refuses an anchor that is no event: before, between, behind those there are", async () => {
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

test("streams() takes an anchor that was refused once it is committed", async () => {
  // The clock and randomness of these services repeat, so that equal batches get equal ids.
  const { service: other } = await openTestService(new SimulatedDisk());
  const { body } = await submit(other, submittedBatch("a", "1"));
  const query = { ...ALL_STREAMS, through: body.last_event_id as string };
  await other.close();
  const { service } = await openTestService(new SimulatedDisk());
  await assert.rejects(service.streams(query), { code: "stream_anchor_unavailable" });
  await submit(service, submittedBatch("a", "1"));
  assert.equal((await service.streams(query)).streams.length, 1);
  await service.close();
});

test("streams() counts an anchor that is no longer kept from the log again", async () => {
  const { service } = await serviceWithStreams();
  const events = await replayAll(service);
  const anchors = events.slice(0, 2 * STREAM_SNAPSHOTS_MAX + 1).map((event) => event.event_id);
  for (const through of [...anchors, ...anchors.toReversed(), ...anchors]) {
    const { rows } = await takePages(service, { ...ALL_STREAMS, through, limit: 2 });
    assert.deepEqual(rows, countedThrough(events, through));
  }
  await service.close();
});

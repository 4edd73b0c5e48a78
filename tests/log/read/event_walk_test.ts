import assert from "node:assert/strict";
import { test } from "node:test";
import { lineEventId } from "../../../src/log/line/stored_line.ts";
import { walkEvents } from "../../../src/log/read/event_walk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { openTestLog, readAll } from "../../support/test_log.ts";

test("walkEvents() visits events in log order until its callback stops it", async () => {
  const { log } = await openTestLog(new SimulatedDisk());
  const events = Array.from({ length: 500 }, () => ({ payload: "x".repeat(1000) }));
  for (const batchId of ["a", "b"]) await log.append([preparedBatch(batchId, { events })]);
  const eventIds = (await readAll(log.snapshot)).map((event) => event.event_id);
  for (const limit of [3, Infinity]) {
    const visited: string[] = [];
    await walkEvents(log.snapshot.files[0]!, (chunk, lineStart) => {
      visited.push(lineEventId(chunk, lineStart));
      return visited.length < limit;
    });
    assert.deepEqual(visited, eventIds.slice(0, limit));
  }
});

/** The end of a service: nothing is taken that the log could not write any more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../src/event/api_error.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { openTestService } from "../support/test_service.ts";

test("EventLogService.append() after close() is refused as overloaded", async () => {
  const { service } = await openTestService(new SimulatedDisk());
  const before = service.append(preparedBatch("before"));
  const closed = service.close();
  const after = service.append(preparedBatch("after"));
  await assert.rejects(after, (error) => error instanceof ApiError && error.code === "overloaded");
  assert.equal((await before).status, "committed");
  await closed;
});

/** Which commits block the thread, on a clock that only slow syncs advance. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { openTestService } from "../../support/test_service.ts";

const SLOW_SYNC_MS = 50;

/** The modes of the syncs since the last call. */
function takeSyncModes({ operations }: SimulatedDisk) {
  return operations.splice(0).filter(({ kind }) => kind === "sync")
    .map(({ callMode }) => callMode);
}

test("append() blocks readers for at most one sync when the disk becomes slow", async (context) => {
  let nowMs = 0;
  context.mock.method(performance, "now", () => nowMs);
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  await service.append(preparedBatch("quick"));
  storage.hook = ({ kind }) => {
    if (kind === "sync") nowMs += SLOW_SYNC_MS;
    return null;
  };
  takeSyncModes(storage);
  for (const id of ["a", "b", "c"]) await service.append(preparedBatch(id));
  assert.deepEqual(takeSyncModes(storage), ["blocking", "pooled", "pooled"]);
  await service.close();
});

test("append() does not block for batches that arrive together, or for a large batch", async (context) => {
  context.mock.method(performance, "now", () => 0);
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const events = Array.from({ length: 300 }, (_, n) => ({ recordKey: `${n}` }));
  const kinds = [["a", "b"].map((id) => preparedBatch(id)), [preparedBatch("large", { events })]];
  for (const [round, batches] of kinds.entries()) {
    // After this one, a small batch on its own would block.
    await service.append(preparedBatch(`quick ${round}`));
    takeSyncModes(storage);
    await Promise.all(batches.map((batch) => service.append(batch)));
    assert.deepEqual(takeSyncModes(storage), ["pooled"]);
  }
  await service.close();
});

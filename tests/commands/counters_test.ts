import assert from "node:assert/strict";
import { test } from "node:test";
import { Counters } from "../../src/commands/counters.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";

test("Counters.ofSyncs() counts syncs and keeps their call mode", async () => {
  const disk = new SimulatedDisk();
  const counters = new Counters();
  const storage = counters.ofSyncs(
    {
      ...disk,
      open: (path, mode) => disk.open(path, mode),
    } as typeof disk,
  );
  const file = await storage.open("f", "create");
  await file.sync("blocking");
  await file.sync();
  const modes = disk.operations.filter(({ kind }) => kind === "sync").map((each) => each.callMode);
  assert.deepEqual(modes, ["blocking", undefined]);
  assert.equal(JSON.parse(counters.line()).fsyncs, 2);
  await file.close();
});

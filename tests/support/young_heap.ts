/** Prints the young generation's sizes in MiB while this script retains values, for tests. */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { getHeapSpaceStatistics } from "node:v8";
import { boundHeap } from "../../src/commands/heap_bounds.ts";

const ROUNDS = 50;
const ROUND_MS = 20;

function youngMib(): number {
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space")!;
  return space.space_size / (1024 * 1024);
}

const sizes = [youngMib()];
boundHeap();
for (let round = 0; round < ROUNDS; round++) {
  const values = Array.from({ length: 20_000 }, (_, number) => ({ round, number }));
  await delay(ROUND_MS);
  if (values.length > 0) sizes.push(youngMib());
}
process.stdout.write(JSON.stringify(sizes));

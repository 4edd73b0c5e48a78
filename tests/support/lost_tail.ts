/** A disk that lies about syncs: acknowledged data is lost in a crash. */
import { existsSync } from "node:fs";
import { readFile, truncate } from "node:fs/promises";
import { join } from "node:path";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { WRITERS } from "../../tools/soak/bounds.ts";
import type { Scene } from "../../tools/soak/disturbances.ts";
import { untilBatches } from "./scenes.ts";

/** More batches than all writers together can have in flight. */
const LOST_COMMITS_MIN = 4 * WRITERS;

/** Kills the service, truncates its tail within the first commit, and restarts the service. */
export async function loseTail(scene: Scene, keptBytes: number): Promise<void> {
  const { served } = scene;
  // Just after a rotation, the tail is missing or holds too few acknowledged commits.
  for (let isLost = false; !isLost;) {
    await untilBatches(scene, LOST_COMMITS_MIN);
    await served.kill();
    const path = join(served.logDir, TAIL_FILE);
    isLost = await countCommits(path) >= LOST_COMMITS_MIN;
    if (isLost) await truncate(path, keptBytes);
    await served.start();
  }
}

async function countCommits(path: string): Promise<number> {
  if (!existsSync(path)) return 0;
  const tail = await readFile(path, "latin1");
  return tail.split("\n").filter((line) => line.startsWith('{"commit":')).length;
}

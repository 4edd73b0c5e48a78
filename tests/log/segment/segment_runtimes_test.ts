/** Segments do not depend on the runtime that writes them. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { withFolder } from "../../../tools/support/program.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import {
  absenceOf,
  executableOf,
  runtimeArgs,
  type RuntimeName,
} from "../../../tools/support/runtimes.ts";
import {
  hostileBatch,
  PENDING_PATH,
  pendingFile,
  smallBatches,
} from "../../support/test_segment.ts";

const SCRIPT = fileURLToPath(new URL("../../support/segment_script.ts", import.meta.url));

async function run(runtime: RuntimeName, args: string[]): Promise<string> {
  const command = [...runtimeArgs(runtime, ["--allow-all"]), SCRIPT, ...args];
  const { stdout } = await promisify(execFile)(executableOf(runtime)!, command);
  return stdout;
}

const RUNTIMES: RuntimeName[] = ["deno", "node"];
const absent = RUNTIMES.find((name) => executableOf(name) === null);

test(`each runtime reads the segments of the other, byte for byte (seed ${SEED})`, {
  skip: absent === undefined ? false : absenceOf(absent),
}, async () => {
  const random = new SeededRandom();
  const hostile = Array.from({ length: 50 }, (_, n) => hostileBatch(random, n, 5));
  const { bytes, lines } = await pendingFile([hostile, smallBatches(12_000)]);
  const expected = [createHash("sha256").update(lines).digest("hex"), 12_250];
  const written: string[] = [];
  for (const [writer, reader] of [["deno", "node"], ["node", "deno"]] as const) {
    await withFolder(async (folder) => {
      await writeFile(join(folder, PENDING_PATH), bytes);
      const segments = await run(writer, ["write", folder]);
      assert.deepEqual(JSON.parse(await run(reader, ["read", folder, segments])), expected);
      written.push(segments);
    });
  }
  // The manifest entries include the file hashes, so the bytes are equal, too.
  assert.equal(written[0], written[1]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { spawnScript } from "../../tools/support/program.ts";

const END_PROCESS = fileURLToPath(new URL("../support/end_process.ts", import.meta.url));

for (const status of [0, 1, 255]) {
  test(`endProcess(${status}) ends the process at once, whatever it is doing`, async () => {
    const { code, signal, stderr } = await spawnScript(END_PROCESS, [`${status}`]).exited;
    assert.deepEqual([code, signal, stderr], [status, null, ""]);
  });
}

test("endProcess() works without permission to start processes", async () => {
  const nodeFlags = ["--permission", "--allow-fs-read=*"];
  const { code, signal, stderr } = await spawnScript(END_PROCESS, ["3"], { nodeFlags }).exited;
  assert.deepEqual([code, signal, stderr], [3, null, ""]);
});

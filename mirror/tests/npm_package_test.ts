/** The mirror's npm package, installed in an empty directory, pushes and restores a log. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { allEvents } from "../../tests/contract/support/api.ts";
import { runCli } from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";
import { appendPayloads, testWithNats, withRestored } from "./support/mirrored.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const node = executableOf("node");
const hasNpm = spawnSync("npm", ["--version"]).status === 0;
const skip = node === null ? absenceOf("node") : hasNpm ? false : "npm not found";

testWithNats("the installed package pushes a log and restores it", async ({ served, nats }) => {
  const folder = join(served.folder, "installed");
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), "{}");
  const env = { ...process.env, PATH: `${dirname(node!)}:${process.env.PATH}` };
  const run = (cwd: string, ...args: string[]) => promisify(execFile)("npm", args, { cwd, env });
  const where = ["--pack-destination", folder, "--silent", "--foreground-scripts=false"];
  await run(ROOT, "pack", "--workspace", "mirror", ...where);
  const [tarball] = globSync("*.tgz", { cwd: folder });
  await run(folder, "install", "--prefer-offline", "--no-audit", "--no-fund", `./${tarball}`);
  const executable = join(folder, "node_modules", ".bin", "mirror");
  const mirror = (...args: string[]) =>
    runCli(args, { executable, wrapper: ["env", `PATH=${env.PATH}`] });
  const { version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  assert.ok((await mirror("--version")).stdout.startsWith(version));

  await appendPayloads({ served }, "b1", [1, "two", { three: null }]);
  const pushed = await mirror("push", "--socket", served.socketPath, "--nats", nats.url, "--once");
  assert.equal(pushed.code, 0, pushed.stderr);
  const copy = join(served.folder, "copy");
  const restored = await mirror("restore", "--nats", nats.url, copy);
  assert.equal(restored.code, 0, restored.stderr);
  await withRestored(served.folder, copy, async (log) => {
    await log.start();
    assert.deepEqual(await allEvents(log.socketPath), await allEvents(served.socketPath));
    await log.stop();
  });
}, { skip });

/**
 * Files and directories that a command's user may not read or write. The command prints one line,
 * exits with the documented status and changes nothing. Root bypasses permissions, so the test
 * drops that capability for the commands.
 */
import assert from "node:assert/strict";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type CliExit, runCli, withFolder } from "../../tools/support/program.ts";
import {
  assertWhole,
  configOf,
  makeWhole,
  type WholeDeployment,
} from "./support/hostile_deployment.ts";
import { skipLoudly } from "./support/skip.ts";
import { UNPRIVILEGED, whyPrivileged } from "../support/unprivileged.ts";

interface Case {
  title: string;
  path: (whole: WholeDeployment) => string;
  mode: number;
  seal: number;
  verify: number;
}

const inLog = (name: string) => () => join("data", "log", name);

const CASES: Case[] = [
  { title: "a tail", path: inLog("tail.ndjson"), mode: 0o000, seal: 1, verify: 1 },
  { title: "a tail (for writing)", path: inLog("tail.ndjson"), mode: 0o400, seal: 1, verify: 0 },
  { title: "a manifest", path: inLog("manifest.json"), mode: 0o000, seal: 1, verify: 1 },
  { title: "a lock", path: inLog(".lock"), mode: 0o000, seal: 1, verify: 0 },
  { title: "a segment", path: ({ segment }) => segment, mode: 0o000, seal: 1, verify: 1 },
  { title: "a pending file", path: ({ pending }) => pending, mode: 0o000, seal: 1, verify: 1 },
  { title: "segments/", path: inLog("segments"), mode: 0o000, seal: 1, verify: 1 },
  { title: "pending/", path: inLog("pending"), mode: 0o000, seal: 1, verify: 1 },
  { title: "the log directory", path: inLog("."), mode: 0o000, seal: 1, verify: 1 },
  { title: "the log directory (for writing)", path: inLog("."), mode: 0o500, seal: 1, verify: 0 },
  { title: "a configuration", path: () => "service.toml", mode: 0o000, seal: 2, verify: 2 },
];

function assertEnd({ code, stdout, stderr }: CliExit, status: number, path: string): void {
  assert.equal(code, status, stderr);
  if (status === 0) return;
  assert.equal(stdout, "");
  assert.ok(stderr.includes(path), `${stderr} names ${path}`);
  assert.match(stderr, /^[^\n]+\n$/);
  assert.doesNotMatch(stderr, /defect/);
}

const reason = await whyPrivileged();
for (const { title, path, mode, seal, verify } of CASES) {
  test(`seal and verify exit as documented without access to ${title}`, async (context) => {
    if (reason !== null) return skipLoudly(context, reason);
    await withFolder(async (folder) => {
      const whole = await makeWhole(join(folder, "whole"));
      const target = join(whole.dir, path(whole));
      await chmod(target, mode);
      for (const [command, status] of [["seal", seal], ["verify", verify]] as const) {
        const args = [command, "--config", configOf(whole.dir)];
        assertEnd(await runCli(args, { wrapper: UNPRIVILEGED }), status, target);
      }
      await chmod(target, 0o700);
      await assertWhole(whole.dir);
    });
  });
}

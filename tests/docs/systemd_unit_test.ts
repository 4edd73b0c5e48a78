/** The systemd unit that `docs/operations.md` installs. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { parseArguments } from "../../src/commands/arguments.ts";
import { type CliExit, runCli, withFolder } from "../../tools/support/program.ts";
import { withDeployment } from "../support/deployment.ts";

const UNIT_FILE = new URL("../../examples/ops/eventlog.service", import.meta.url);
const UNIT = readFileSync(UNIT_FILE, "utf8");
/** Exposure level from `systemd-analyze security` (0 to 10). An unhardened unit scores 9.6. */
const EXPOSURE_MAX = 2;

test("the systemd unit starts a valid command without network access", () => {
  const [, program, line] = /^ExecStart=(\S+) (.*)$/m.exec(UNIT)!;
  assert.equal(program, "/usr/local/bin/eventlog");
  const invocation = parseArguments(line!.split(" "));
  const options = { config: "/srv/log/service.toml" };
  assert.deepEqual(invocation, { command: "serve", dir: undefined, options });
  assert.match(UNIT, /^PrivateNetwork=yes$/m);
  assert.match(UNIT, /^RestrictAddressFamilies=AF_UNIX$/m);
});

test("systemd reports no errors in the unit and a low exposure", (context) =>
  withFolder(async (folder) => {
    const path = join(folder, "eventlog.service");
    await writeFile(path, UNIT.replace("/usr/local/bin/eventlog", "/bin/true"));
    const options = { encoding: "utf8" } as const;
    const verified = spawnSync("systemd-analyze", ["verify", "--man=no", path], options);
    if (verified.error !== undefined) return context.skip("systemd-analyze is not installed");
    assert.equal(verified.stderr.split("\n").filter((line) => line.includes(path)).join("\n"), "");
    assert.equal(verified.status, 0, verified.stderr);
    const judged = spawnSync("systemd-analyze", ["security", "--offline=true", path], options);
    const [, exposure] = /Overall exposure level .*: ([\d.]+) /.exec(judged.stdout) ?? [];
    assert.ok(Number(exposure) <= EXPOSURE_MAX, judged.stdout + judged.stderr);
  }));

/** Runs the unit's readiness command for a socket and a process. */
function awaitReadiness(socketPath: string, mainPid: number): Promise<CliExit> {
  const [, command] = /^ExecStartPost=\/bin\/sh -c '(.*)'$/m.exec(UNIT)!;
  const script = command!.replace("/srv/log/data/ground.sock", socketPath);
  return runCli(["-c", script.replace("$MAINPID", String(mainPid))], { executable: "/bin/sh" });
}

test("the systemd unit is ready once the service answers, and fails if the service ends", (context) =>
  withDeployment(async (deployment) => {
    if (spawnSync("curl", ["--version"]).status !== 0) return context.skip("curl is not installed");
    const { socketPath } = deployment;
    const ready = awaitReadiness(socketPath, process.pid);
    const { child } = await deployment.start();
    assert.equal((await ready).code, 0);
    await deployment.stop();
    const { code, stderr } = await awaitReadiness(socketPath, child.pid!);
    assert.equal(code, 1, stderr);
  }));

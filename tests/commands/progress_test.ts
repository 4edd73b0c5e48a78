/** Progress of long-running commands. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { loadConfig } from "../../src/commands/config.ts";
import { PROGRESS_INTERVAL_MS, startProgress } from "../../src/commands/progress.ts";
import { seal } from "../../src/commands/seal.ts";
import type { Terminal } from "../../src/commands/terminal.ts";
import { verify } from "../../src/commands/verify.ts";
import { cliCommand, runCli, withFolder } from "../../tools/support/program.ts";
import { fillDeployment } from "../support/filled.ts";

test("startProgress() shows at most one message per interval, and clears it", (context) => {
  context.mock.method(performance, "now", () => nowMs);
  let nowMs = 1000;
  const shown: string[] = [];
  const terminal = { showProgress: (text: string) => void shown.push(text) };
  const progress = startProgress(terminal, "verified");
  progress.update(1, 9);
  nowMs += PROGRESS_INTERVAL_MS;
  progress.update(2, 9);
  progress.update(3, 9);
  nowMs += PROGRESS_INTERVAL_MS - 1;
  progress.update(4, 9);
  nowMs += 1;
  progress.update(5, 9);
  progress.end();
  assert.deepEqual(shown, [
    "verified 2 of 9 events",
    "verified 5 of 9 events",
    "",
  ]);
});

/** A command's output in order, with progress in brackets and lines verbatim. */
async function toldBy(
  context: TestContext,
  command: (terminal: Terminal) => Promise<void>,
): Promise<string[]> {
  let nowMs = 0;
  context.mock.method(performance, "now", () => nowMs += PROGRESS_INTERVAL_MS);
  const told: string[] = [];
  await command({
    print: (text) => void told.push(text),
    report: (line) => void told.push(line),
    showProgress: (text) => void told.push(`[${text}]`),
    stop: new AbortController().signal,
  });
  context.mock.restoreAll();
  return told;
}

test("seal and verify clear their progress before they report", (context) =>
  withFolder(async (dir) => {
    await fillDeployment(dir, 2);
    const config = await loadConfig(join(dir, "service.toml"));
    const verifying = (terminal: Terminal) => verify(config, { chain: "" }, terminal);
    const verified = await toldBy(context, verifying);
    assert.deepEqual(verified.slice(0, 2), ["[verified 2,000 events]", "[]"]);
    assert.match(verified[2]!, /^\{"ok":true,/);
    assert.match(verified[3]!, /^verified the log through event /);
    assert.equal(verified.length, 4);

    const sealed = await toldBy(context, (terminal) => seal(config, terminal));
    const shown = ["[sealed 1,000 of 2,000 events]", "[sealed 2,000 events]", "[]"];
    assert.deepEqual(sealed.slice(0, 3), shown);
    assert.match(sealed[3]!, /^sealed segments\//);
    assert.deepEqual(sealed.slice(4), ["[]", "sealed 2,000 events in total; new segments: 1"]);
  }));

test("verify shows progress only on a terminal", (context) =>
  withFolder(async (dir) => {
    await fillDeployment(dir, 1);
    const args = ["verify", "--config", join(dir, "service.toml")];
    const piped = await runCli(args);
    assert.match(piped.stderr, /^verified the log [^\r\n]*\n$/);
    assert.match(piped.stdout, /^\{[^\n]*\}\n$/);

    // `script` from util-linux provides a terminal.
    const quoted = cliCommand(args).map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
    const options = { encoding: "utf8", input: "" } as const;
    const { error, stdout } = spawnSync("script", ["-qec", quoted, "/dev/null"], options);
    if (error !== undefined) return context.skip("script (util-linux) is not installed");
    assert.ok(stdout.includes(`\r${" ".repeat(72)}\r{"ok":true,`), stdout);
  }));

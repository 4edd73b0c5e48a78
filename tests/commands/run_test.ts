import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { AssertionError } from "../../src/assert.ts";
import { reportFailure } from "../../src/commands/run.ts";
import type { Output } from "../../src/commands/terminal.ts";
import { CorruptLogError, UnsupportedFormatError } from "../../src/log/storage/errors.ts";
import { VERSION } from "../../src/version.ts";
import { runCli } from "../../tools/support/program.ts";

/** A terminal that records its output. */
function capture() {
  const output = { stdout: "", stderr: "" };
  const terminal: Output = {
    print: (text) => void (output.stdout += text),
    report: (line) => void (output.stderr += `${line}\n`),
    showProgress: () => {},
  };
  return { output, terminal };
}

test("VERSION equals the version in deno.json and package.json", async () => {
  for (const name of ["deno.json", "package.json"]) {
    const text = await readFile(new URL(`../../${name}`, import.meta.url), "utf8");
    assert.equal(JSON.parse(text).version, VERSION);
  }
});

test("the program prints its version on standard output", async () => {
  const { code, stdout, stderr } = await runCli(["--version"]);
  assert.deepEqual([code, stderr], [0, ""]);
  // Release builds append their revision.
  const [version, revision = "0000000"] = stdout.trimEnd().split("+");
  assert.equal(version, VERSION);
  assert.match(revision, /^[0-9a-f]{7,}(-dirty)?$/);
});

/** A system error, like those of the runtimes. The code precedes the colon in the message. */
function systemError(message: string): Error {
  return Object.assign(new Error(message), { code: message.split(":")[0] });
}

const FAILURES: [error: unknown, status: number, text: RegExp][] = [
  [new CorruptLogError("tail.ndjson: corrupt"), 1, /^tail\.ndjson: corrupt; .* from a backup\n$/],
  [new UnsupportedFormatError("manifest.json: newer"), 4, /^manifest\.json: newer\n$/],
  [new Error("EIO: i/o error, read"), 1, /^EIO: i\/o error, read\n$/],
  [systemError("ENOSPC: no space left on device, write"), 1, /, write; free some disk space\n$/],
  [systemError("EACCES: permission denied, open"), 1, /, open; run as the user that owns/],
  [new Error("two\n lines"), 1, /^two lines\n$/],
  ["thrown text", 1, /^thrown text\n$/],
  [new TypeError("x is undefined"), 1, /bug in this program: TypeError: x is undefined\n.* at /],
  [new AssertionError("broken"), 1, /bug in this program: AssertionError: broken\n.* at /],
];

for (const [error, status, text] of FAILURES) {
  test(`reportFailure() returns ${status} for ${String(error).replaceAll("\n", " ")}`, () => {
    const { output, terminal } = capture();
    assert.equal(reportFailure(error, terminal), status);
    assert.match(output.stderr, text);
    assert.equal(output.stdout, "");
  });
}

/**
 * Unusable configurations: huge, on one line, deeply nested, or with NULs. Every command that reads
 * such a file prints one short line, exits with status 2 and leaves the log alone. Regression:
 * error messages quoted 64 KiB of digits or of a path, including line breaks.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readdir, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { CONFIG_TEMPLATE } from "../../src/commands/config_template.ts";
import { runCli, withInitialized } from "../../tools/support/program.ts";
import { type CommandEnd, configOf, runOn } from "./support/hostile_deployment.ts";
import { CONFIG_FILE_BYTES_MAX } from "../../src/commands/config.ts";

const TEN_MB = 10_000_000;
/** Maximum length of a message about the configuration, including its path. */
const LINE_CHARS_MAX = 400;
/** Size of the largest configuration that is accepted. */
const ROOM = CONFIG_FILE_BYTES_MAX;
/** A string that shows whether a message quotes its input. */
const SECRET = "s3cret";

const fill = (text: string, sizeBytes: number) => text.repeat(Math.floor(sizeBytes / text.length));

const CASES: [title: string, text: string][] = [
  ["10 MB of valid configuration", CONFIG_TEMPLATE + fill("\n", TEN_MB)],
  ["10 MB of nested arrays", `a = ${fill("[", TEN_MB)}`],
  ["10 MB of one token", `[server]\ntoken = "${SECRET}${fill("x", TEN_MB)}"\n`],
  ["one byte too many", fill("\n", ROOM + 1)],
  ["one line", fill("x", ROOM)],
  ["closed nested arrays", `a = ${fill("[", ROOM / 2 - 4)}${fill("]", ROOM / 2 - 4)}`],
  ["nested tables", `a = ${fill("{a=", ROOM - 4)}`],
  ["a key of many parts", `${fill("a.", ROOM - 8)}a = 1`],
  ["many keys", Array.from({ length: ROOM / 8 }, (_, n) => `k${n}=1`).join("\n").slice(0, ROOM)],
  ["many tables", fill("[[a]]\n", ROOM)],
  ["an endless number", `[replay]\nmax_limit = ${fill("9", ROOM - 30)}`],
  ["an endless negative number", `[replay]\ndefault_limit = -${fill("9", ROOM - 30)}`],
  ["an endless string", `[server]\ntoken = "${SECRET}${fill("x", ROOM - 100)}`],
  ["a path that is too long", `[server]\nsocket = "/${fill("s", ROOM - 100)}"`],
  ["a path with line breaks", `[server]\nsocket = "/${fill("\\n\\r", 400)}"`],
  ["a NUL in a comment", `# \0\n${CONFIG_TEMPLATE}`],
  ["a NUL in a token", CONFIG_TEMPLATE.replace('token = ""', `token = "${SECRET}\0"`)],
  ["a NUL at the end", `${CONFIG_TEMPLATE}\0`],
];

function assertRefused({ status, stdout, stderr }: CommandEnd, label: string): void {
  assert.equal(status, 2, `${label}: ${stderr.slice(0, LINE_CHARS_MAX)}`);
  assert.equal(stdout, "", label);
  assert.match(stderr, /^[^\n]+\n$/, label);
  assert.ok(stderr.length <= LINE_CHARS_MAX, `${label}: ${stderr.length} characters`);
  assert.ok(!stderr.includes(SECRET), label);
  assert.doesNotMatch(stderr.trimEnd(), /\p{Cc}/u, label);
}

/** Runs `use` with a deployment that has this configuration. The log must stay empty. */
async function withConfig(bytes: Uint8Array | string, use: (dir: string) => Promise<void>) {
  await withInitialized(async (dir) => {
    await writeFile(configOf(dir), bytes);
    await use(dir);
    assert.deepEqual(await readdir(join(dir, "data", "log")), []);
  });
}

for (const [title, text] of CASES) {
  test(`serve, seal and verify reject a configuration of ${title}`, async () => {
    await withConfig(text, async (dir) => {
      for (const command of ["serve", "seal", "verify"]) {
        assertRefused(await runOn(dir, [command]), command);
      }
      assert.equal((await runOn(dir, ["init"])).status, 1);
    });
  });
}

test("serve as a separate process rejects configurations of 10 MB and 1 TB", async () => {
  await withConfig(Buffer.alloc(TEN_MB, "x"), async (dir) => {
    for (const sizeBytes of [TEN_MB, 1e12]) {
      // A sparse file, which occupies no disk space.
      await truncate(configOf(dir), sizeBytes);
      const { code, ...said } = await runCli(["serve", "--config", configOf(dir)]);
      assertRefused({ status: code!, ...said }, `${sizeBytes} bytes`);
    }
  });
});

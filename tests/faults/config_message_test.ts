/**
 * The bug: a message about the configuration quoted a value whole, 64 KiB of digits or path, and
 * with its line breaks, so that a usage error was neither one line nor readable.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CONFIG_VALUE_SHOWN_MAX, parseConfig } from "../../src/commands/config.ts";

/** What a message has besides the value. */
const WORDS_CHARS_MAX = 200;

const LONG = 60_000;
const CASES: [title: string, text: string][] = [
  ["a limit of many digits", `[replay]\nmax_limit = ${"9".repeat(LONG)}`],
  ["a negative limit of many digits", `[replay]\ndefault_limit = -${"9".repeat(LONG)}`],
  ["a socket path that is too long", `[server]\nsocket = "/${"s".repeat(LONG)}"`],
  ["a socket path with line breaks", `[server]\nsocket = "/${"\\n\\r".repeat(100)}"`],
  ["a socket path in the log folder, with a line break", `[server]\nsocket = "data/log/a\\nb"`],
];

for (const [title, text] of CASES) {
  test(`parseConfig() tells of ${title} in one short line`, () => {
    assert.throws(() => parseConfig("service.toml", text), ({ message }: Error) => {
      assert.doesNotMatch(message, /\p{Cc}/u);
      assert.ok(message.length <= CONFIG_VALUE_SHOWN_MAX + WORDS_CHARS_MAX, message);
      assert.match(message, /^service\.toml: \[(replay|server)\] /);
      return true;
    });
  });
}

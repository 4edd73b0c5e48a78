import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { CONFIG_FILE_BYTES_MAX, loadConfig, parseConfig } from "../../src/commands/config.ts";
import { SOCKET_PATH_BYTES_MAX } from "../../src/socket_path.ts";
import { CONFIG_TEMPLATE } from "../../src/commands/config_template.ts";
import { CommandError, EXIT_USAGE } from "../../src/commands/exit.ts";
import { TOKEN_BYTES_MAX } from "../../src/limits.ts";
import { withFolder } from "../../tools/support/program.ts";

const PATH = "/srv/log/service.toml";

/** Returns the message of an error, which must be a usage error on a single line. */
function messageOf(error: unknown): string {
  assert.ok(error instanceof CommandError, String(error));
  assert.equal(error.exitStatus, EXIT_USAGE);
  assert.ok(!error.message.includes("\n"), "one line");
  return error.message;
}

function faultOf(text: string): string {
  try {
    parseConfig(PATH, text);
  } catch (error) {
    return messageOf(error);
  }
  throw new assert.AssertionError({ message: `accepted: ${text}` });
}

test("parseConfig() accepts the file that init writes", () => {
  assert.deepEqual(parseConfig(PATH, CONFIG_TEMPLATE), {
    path: PATH,
    dataDir: "/srv/log/data",
    securityMode: "open",
    integrityAnchor: "none",
    socketPath: "/srv/log/data/ground.sock",
    token: "",
    replay: { defaultLimit: 1000, maxLimit: 100_000 },
  });
});

test("parseConfig() uses defaults for missing keys", () => {
  assert.deepEqual(parseConfig(PATH, ""), parseConfig(PATH, CONFIG_TEMPLATE));
  assert.deepEqual(parseConfig(PATH, "[replay]\n[server]\n"), parseConfig(PATH, CONFIG_TEMPLATE));
});

test("parseConfig() caps the default of default_limit at max_limit", () => {
  const { replay } = parseConfig(PATH, "[replay]\nmax_limit = 500");
  assert.deepEqual(replay, { defaultLimit: 500, maxLimit: 500 });
});

test("parseConfig() resolves relative paths against the directory of the file", () => {
  const text = '[data]\ndir = "../store"\n[server]\nsocket = "run/s.sock"';
  const { dataDir, socketPath } = parseConfig(PATH, text);
  assert.deepEqual([dataDir, socketPath], ["/srv/store", "/srv/log/run/s.sock"]);
  assert.equal(parseConfig(PATH, '[data]\ndir = "/mnt/store"').dataDir, "/mnt/store");
});

test("parseConfig() accepts limits at their extremes, in any TOML notation", () => {
  for (const [spelling, value] of [["0x1", 1], ["9007199254740991", 2 ** 53 - 1]]) {
    const { replay } = parseConfig(PATH, `[replay]\ndefault_limit = 1\nmax_limit = ${spelling}`);
    assert.equal(replay.maxLimit, value);
  }
});

const FAULTS: [text: string, ...words: string[]][] = [
  ["[replay]\nmax_limit = 0", "[replay] max_limit must be at least 1, got 0"],
  ["[replay]\ndefault_limit = 0", "[replay] default_limit must be at least 1, got 0"],
  ["[replay]\ndefault_limit = 11\nmax_limit = 10", "[replay] default_limit", "max_limit 10", "11"],
  ["[replay]\nmax_limit = 9007199254740992", "[replay] max_limit must be at most"],
  ["[replay]\nmax_limit = 10.0", "[replay] max_limit must be an integer, got a float"],
  ["[replay]\nmax_limit = 2026-01-01", "[replay] max_limit must be an integer, got a date"],
  ['[replay]\nmax_limit = "10"', "[replay] max_limit must be an integer, got a string"],
  ["[replay]\nmax_limit = true", "[replay] max_limit must be an integer, got a boolean"],
  ["[replay]\nmax_limit = {}", "[replay] max_limit must be an integer, got a table"],
  ["[data]\ndir = 1", "[data] dir must be a string, got an integer"],
  ['[data]\ndir = ""', "[data] dir must be a path, got an empty string"],
  ['[data]\ndir = "a\\u0000b"', "[data] dir", "NUL"],
  ['[server]\nsocket = "data/log/x.sock"', "[server] socket must be outside the log directory"],
  ["[server]\ntoken = 5", "[server] token must be a string, got an integer"],
  ['[security]\nmode = "closed"', '[security] mode must be "open", got "closed"'],
  ['[integrity]\nanchor = "notary"', '[integrity] anchor must be "none", got "notary"'],
  ["[integrity]\nanchor = 1979-05-27T07:32:00Z", "[integrity] anchor must be a string, got a date"],
  ["[servers]", "[servers] is unknown; use one of data, security"],
  ['["a\\nb"]', "[a?b] is unknown"],
  ["[server]\nport = 1", "[server] port is unknown; use one of socket, token"],
  ["[toString]", "[toString] is unknown"],
  ["[__proto__]\nx = 1", "[__proto__] is unknown"],
  ["data = 1", "[data] must be a table, got an integer"],
  ["[[replay]]\nmax_limit = 1", "[replay] must be a table, got an array"],
  ["[data]\ndir = ", "line 2, column"],
  ["[data]\ndir = 'a'\ndir = 'b'", "line 3, column"],
  ["[".repeat(60_000), "line 1, column"],
];

for (const [text, ...words] of FAULTS) {
  const title = text.replaceAll("\n", " ").slice(0, 60);
  test(`parseConfig() rejects ${JSON.stringify(title)}`, () => {
    const message = faultOf(text);
    assert.ok(message.startsWith(`${PATH}: `), message);
    for (const word of words) assert.ok(message.includes(word), message);
  });
}

test("parseConfig() limits the byte length of the absolute socket path", () => {
  const path = "/" + "s".repeat(SOCKET_PATH_BYTES_MAX - 1);
  assert.equal(parseConfig(PATH, `[server]\nsocket = "${path}"`).socketPath, path);
  const long = "/" + "é".repeat(SOCKET_PATH_BYTES_MAX / 2 + 1);
  const relative = "s".repeat(SOCKET_PATH_BYTES_MAX - 5);
  for (const socket of [`${path}s`, long, relative]) {
    const reason = `[server] socket must be at most ${SOCKET_PATH_BYTES_MAX} bytes`;
    assert.ok(faultOf(`[server]\nsocket = "${socket}"`).includes(reason));
  }
});

test("parseConfig() rejects a [query] section with the specified message", () => {
  for (const text of ["[query]", "[query]\nengine = 1", "query = 1", "[[query]]"]) {
    assert.equal(
      faultOf(text),
      "The [query] section is no longer supported. Remove it from service.toml.",
    );
  }
});

test("parseConfig() never shows the token", () => {
  for (
    const text of [
      '[server]\ntoken = "s3cret\n',
      '[server]\ntoken = "s3cret" s3cret',
      "[server]\ntoken = s3cret",
      '[server]\ntoken = ["s3cret"]',
      '[server]\ntoken = "s3cret\\u0007"',
      '[server]\ntoken = "s3cret "',
      '[server]\ntoken = "s3crét"',
      '[server]\ntokn = "s3cret"',
      '[server]\ntoken = "s3cret"\ntoken = "s3cret"',
      `[server]\ntoken = "s3cret${"x".repeat(TOKEN_BYTES_MAX)}"`,
    ]
  ) {
    const message = faultOf(text);
    assert.ok(!/s3cr/.test(message), message);
  }
});

test("parseConfig() accepts a token of printable ASCII characters", () => {
  const { token } = parseConfig(PATH, "[server]\ntoken = 'aZ09-._~+/= \"'");
  assert.equal(token, 'aZ09-._~+/= "');
});

test("loadConfig() rejects anything but a readable file", () =>
  withFolder(async (folder) => {
    const at = (name: string) => join(folder, name);
    await mkdir(at("folder"));
    await writeFile(at("binary"), new Uint8Array([0x23, 0xff, 0xfe]));
    await writeFile(at("large"), "#".repeat(CONFIG_FILE_BYTES_MAX + 1));
    await writeFile(at("file"), "");
    const cases: [string, RegExp][] = [
      ["missing", /no such file/],
      ["folder", /is a directory/],
      ["binary", /not valid UTF-8/],
      ["large", /larger than/],
      ["file/service.toml", /cannot be opened/],
      ["nul\0", /./],
    ];
    for (const [name, reason] of cases) {
      const message = await loadConfig(at(name)).then(() => "loaded", messageOf);
      assert.match(message, reason);
    }
  }));

test("loadConfig() reads a file of the maximum size, even through a symlink", () =>
  withFolder(async (folder) => {
    const path = join(folder, "real.toml");
    await writeFile(path, "#".repeat(CONFIG_FILE_BYTES_MAX));
    await symlink(path, join(folder, "service.toml"));
    const config = await loadConfig(join(folder, "service.toml"));
    assert.equal(config.dataDir, join(folder, "data"));
  }));

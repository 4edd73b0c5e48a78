/**
 * The configuration: keys, validation and defaults. All keys are optional. A fault is a usage error
 * (exit status 2) that names the file, the key and the reason, and never shows the token.
 */
import process from "node:process";
import { Buffer } from "node:buffer";
import { dirname, join, resolve } from "node:path";
import { TOKEN_BYTES_MAX } from "../limits.ts";
import { readBoundedFile } from "./bounded_file.ts";
import { CommandError, EXIT_UNSUPPORTED, usageError } from "./exit.ts";
import { parseToml, TomlSyntaxError, type TomlTable, tomlTypeOf } from "./toml.ts";

/** Longest quotation of a value in a message, in UTF-16 code units. */
const CONFIG_VALUE_SHOWN_MAX = 200;

/** A validated configuration. Paths are absolute. */
export interface Config {
  /** The path given on the command line, for messages. */
  path: string;
  dataDir: string;
  securityMode: SecurityMode;
  integrityAnchor: IntegrityAnchor;
  socketPath: string;
  /** Empty: no authentication. */
  token: string;
  replay: { defaultLimit: number; maxLimit: number };
}

const SECURITY_MODES = ["open", "governed", "locked"] as const;
const INTEGRITY_ANCHORS = ["none", "signed", "mirrored", "witnessed"] as const;
export type SecurityMode = typeof SECURITY_MODES[number];
export type IntegrityAnchor = typeof INTEGRITY_ANCHORS[number];

/** Values of the generated file and of missing keys. */
export const DEFAULTS = {
  data: { dir: "./data" },
  security: { mode: "open" },
  integrity: { anchor: "none" },
  server: { socket: "data/ground.sock", token: "" },
  replay: { default_limit: 1000, max_limit: 100_000 },
} as const;

const QUERY_REMOVED = "The [query] section is no longer supported. Remove it from service.toml.";

/** Longest path of a Unix socket: `sockaddr_un.sun_path` without NUL; the BSDs include macOS. */
export const SOCKET_PATH_BYTES_MAX = process.platform === "linux" ? 107 : 103;

/** Reads and validates a configuration file. @throws {CommandError} exit status 2. */
export async function loadConfig(path: string): Promise<Config> {
  return parseConfig(path, await readBoundedFile(path));
}

/**
 * Refuses a security mode other than `open` and an integrity anchor other than `none`: this program
 * does not ignore a guarantee that it cannot give.
 * @throws {CommandError} exit status 4.
 */
export function requireSupported(config: Config, command: string): void {
  const { path, securityMode, integrityAnchor } = config;
  if (securityMode !== "open") {
    throw new CommandError(
      EXIT_UNSUPPORTED,
      `${path}: [security] mode ${securityMode} is not supported by ${command}; set it to "open"`,
    );
  }
  if (integrityAnchor !== "none") {
    throw new CommandError(
      EXIT_UNSUPPORTED,
      `${path}: [integrity] anchor ${integrityAnchor} is not supported by ${command}; ` +
        'set it to "none"',
    );
  }
}

/**
 * Validates the text of the configuration file at `path`. Relative paths in it start at its folder.
 * @throws {CommandError} exit status 2.
 */
export function parseConfig(path: string, text: string): Config {
  const reader = new KeyReader(path, parseDocument(path, text));
  const dir = dirname(resolve(path));
  const dataDir = resolve(dir, reader.path("data", "dir", DEFAULTS.data.dir));
  const config: Config = {
    path,
    dataDir,
    securityMode: reader.choice("security", "mode", SECURITY_MODES),
    integrityAnchor: reader.choice("integrity", "anchor", INTEGRITY_ANCHORS),
    socketPath: resolve(dir, reader.path("server", "socket", DEFAULTS.server.socket)),
    token: reader.token(),
    replay: replayLimits(reader),
  };
  checkSocketPath(config, reader);
  return config;
}

function parseDocument(path: string, text: string): TomlTable {
  let document: TomlTable;
  try {
    document = parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlSyntaxError)) throw error;
    throw usageError(`${path}: ${error.message}`);
  }
  if (Object.hasOwn(document, "query")) throw usageError(QUERY_REMOVED);
  refuseUnknownKeys(path, document);
  return document;
}

function refuseUnknownKeys(path: string, document: TomlTable): void {
  for (const [section, keys] of Object.entries(document)) {
    if (!Object.hasOwn(DEFAULTS, section)) {
      throw usageError(`${path}: unknown section or key ${keyText(section)}; ${known(DEFAULTS)}`);
    }
    if (tomlTypeOf(keys) !== "a table") {
      throw usageError(`${path}: [${section}] must be a table, got ${tomlTypeOf(keys)}`);
    }
    const keysOf = DEFAULTS[section as keyof typeof DEFAULTS];
    for (const key of Object.keys(keys as TomlTable)) {
      if (!Object.hasOwn(keysOf, key)) {
        throw usageError(`${path}: [${section}] unknown key ${keyText(key)}; ${known(keysOf)}`);
      }
    }
  }
}

function known(names: object): string {
  return `known are ${Object.keys(names).join(", ")}`;
}

/** Formats a key for a message, quoted if it has unusual characters. */
function keyText(key: string): string {
  return /^[A-Za-z0-9_-]{1,64}$/.test(key) ? key : JSON.stringify(key.slice(0, 64));
}

/** Formats a value for a message: truncated, and in one line. */
function shown(value: string): string {
  const cut = value.length > CONFIG_VALUE_SHOWN_MAX
    ? `${value.slice(0, CONFIG_VALUE_SHOWN_MAX)}...`
    : value;
  return cut.replaceAll(/\p{Cc}/gu, "?");
}

/** An implicit default limit adapts to a smaller maximum; an explicit one is an error. */
function replayLimits(reader: KeyReader): Config["replay"] {
  const maxLimit = reader.limit("replay", "max_limit") ?? DEFAULTS.replay.max_limit;
  const defaultLimit = reader.limit("replay", "default_limit") ??
    Math.min(DEFAULTS.replay.default_limit, maxLimit);
  if (defaultLimit > maxLimit) {
    reader.fail("replay", "default_limit", `must be at most max_limit ${maxLimit}`, defaultLimit);
  }
  return { defaultLimit, maxLimit };
}

function checkSocketPath(config: Config, reader: KeyReader): void {
  const sizeBytes = Buffer.byteLength(config.socketPath);
  if (sizeBytes > SOCKET_PATH_BYTES_MAX) {
    const rule = `must be a path of at most ${SOCKET_PATH_BYTES_MAX} bytes once it is absolute`;
    reader.fail("server", "socket", rule, `${sizeBytes} bytes: ${config.socketPath}`);
  }
  const logDir = join(config.dataDir, "log");
  if (config.socketPath === logDir || config.socketPath.startsWith(`${logDir}/`)) {
    reader.fail("server", "socket", "must lie outside the log folder", config.socketPath);
  }
}

/** Reads typed values from a document whose section and key names were checked. */
class KeyReader {
  readonly #path: string;
  readonly #document: TomlTable;

  constructor(path: string, document: TomlTable) {
    this.#path = path;
    this.#document = document;
  }

  fail(section: string, key: string, rule: string, got: string | number | bigint): never {
    throw usageError(`${this.#path}: [${section}] ${key} ${rule}, got ${shown(String(got))}`);
  }

  path(section: string, key: string, byDefault: string): string {
    const value = this.#string(section, key) ?? byDefault;
    if (value === "") this.fail(section, key, "must be a path", "an empty string");
    if (value.includes("\0")) this.fail(section, key, "must be a path", "one with a NUL character");
    return value;
  }

  /** Returns one of `known`; the first is the default. */
  choice<T extends string>(section: string, key: string, known: readonly T[]): T {
    const value = this.#string(section, key);
    if (value === undefined) return known[0]!;
    const choice = known.find((name) => name === value);
    if (choice !== undefined) return choice;
    return this.fail(section, key, `must be "${known[0]}"`, JSON.stringify(value.slice(0, 64)));
  }

  token(): string {
    const token = this.#string("server", "token") ?? DEFAULTS.server.token;
    const sizeBytes = Buffer.byteLength(token);
    if (sizeBytes > TOKEN_BYTES_MAX) {
      this.fail("server", "token", `must have at most ${TOKEN_BYTES_MAX} bytes`, sizeBytes);
    }
    if (!/^[\x20-\x7e]*$/.test(token) || token !== token.trim()) {
      const got = "other characters, or surrounding spaces (value not shown)";
      this.fail("server", "token", "must be printable ASCII that a header can carry", got);
    }
    return token;
  }

  /** Returns a positive safe integer; undefined if absent. */
  limit(section: string, key: string): number | undefined {
    const value = this.#value(section, key);
    if (value === undefined) return undefined;
    if (typeof value !== "bigint") {
      return this.fail(section, key, "must be an integer", tomlTypeOf(value));
    }
    if (value < 1n) this.fail(section, key, "must be at least 1", value);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
      this.fail(section, key, `must be at most ${Number.MAX_SAFE_INTEGER}`, value);
    }
    return Number(value);
  }

  #string(section: string, key: string): string | undefined {
    const value = this.#value(section, key);
    if (value === undefined || typeof value === "string") return value;
    return this.fail(section, key, "must be a string", tomlTypeOf(value));
  }

  #value(section: string, key: string): unknown {
    return (this.#document[section] as TomlTable | undefined)?.[key];
  }
}

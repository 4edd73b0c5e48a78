/**
 * The configuration: keys, validation and defaults. All keys are optional. An invalid file is a
 * usage error (exit status 2) that names the file, key and reason, and never shows the token.
 */
import { Buffer, isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { parse, TomlDate, TomlError } from "smol-toml";
import { TOKEN_BYTES_MAX } from "../limits.ts";
import { SOCKET_PATH_BYTES_MAX } from "../socket_path.ts";
import { CONFIG_TEMPLATE } from "./config_template.ts";
import { absolutePath, isWithin } from "./deployment.ts";
import { CommandError, EXIT_UNSUPPORTED, usageError } from "./exit.ts";
import { errorCode } from "../log/storage/storage.ts";
import { describeError } from "../log/storage/system_error.ts";

/** Maximum length of a value quoted in a message, in UTF-16 code units. */
const CONFIG_VALUE_SHOWN_MAX = 200;

/** Maximum size of a configuration file. Its seven keys need far less. */
export const CONFIG_FILE_BYTES_MAX: number = 64 * 1024;

/** A validated configuration. Paths are absolute. */
export interface Config {
  /** The path given on the command line, for messages. */
  path: string;
  dataDir: string;
  securityMode: typeof SECURITY_MODES[number];
  integrityAnchor: typeof INTEGRITY_ANCHORS[number];
  socketPath: string;
  /** Empty if no authentication is required. */
  token: string;
  replay: { defaultLimit: number; maxLimit: number };
}

const SECURITY_MODES = ["open", "governed", "locked"] as const;
const INTEGRITY_ANCHORS = ["none", "signed", "mirrored", "witnessed"] as const;

/** A configuration file: sections, which hold keys, which all have a string or an integer. */
interface Settings {
  data: { dir: string };
  security: { mode: string };
  integrity: { anchor: string };
  server: { socket: string; token: string };
  replay: { default_limit: bigint; max_limit: bigint };
}

const DEFAULTS = parse(CONFIG_TEMPLATE, { integersAsBigInt: true }) as unknown as Settings;

const QUERY_REMOVED = "The [query] section is no longer supported. Remove it from service.toml.";

/** Reads and validates a configuration file. @throws {CommandError} with exit status 2. */
export async function loadConfig(path: string): Promise<Config> {
  absolutePath(path);
  return parseConfig(path, await readConfigFile(path));
}

/** Reads a file, which must be small, regular and UTF-8. @throws {CommandError} */
export async function readConfigFile(path: string): Promise<string> {
  // O_NONBLOCK keeps open(2) from blocking on a FIFO.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    const reason = errorCode(error) === "ENOENT"
      ? "no such file; specify it with --config, or create one with init"
      : `cannot be opened: ${describeError(error)}`;
    throw usageError(`${path}: ${reason}`);
  });
  try {
    const stat = await file.stat();
    if (stat.isDirectory()) throw usageError(`${path}: is a directory, not a configuration file`);
    if (!stat.isFile()) throw usageError(`${path}: not a regular file`);
    const end = CONFIG_FILE_BYTES_MAX; // Inclusive.
    const content = await buffer(file.createReadStream({ end, autoClose: false }));
    if (content.length > CONFIG_FILE_BYTES_MAX) {
      const limit = `${CONFIG_FILE_BYTES_MAX} bytes, the configuration file limit`;
      throw usageError(`${path} is larger than ${limit}`);
    }
    if (!isUtf8(content)) throw usageError(`${path}: not valid UTF-8`);
    return new TextDecoder().decode(content);
  } finally {
    await file.close();
  }
}

/**
 * Refuses settings that this program cannot provide, so that none is silently ignored.
 * @throws {CommandError} with exit status 4.
 */
export function requireSupported(config: Config, command: string): void {
  const { path, securityMode, integrityAnchor } = config;
  const refuse = (setting: string, weakest: string): never => {
    const remedy = `is not supported by ${command}; set it to "${weakest}"`;
    throw new CommandError(EXIT_UNSUPPORTED, `${path}: ${setting} ${remedy}`);
  };
  if (securityMode !== "open") refuse(`[security] mode ${securityMode}`, "open");
  if (integrityAnchor !== "none") refuse(`[integrity] anchor ${integrityAnchor}`, "none");
}

/** Validates the contents of the file at `path`, the base for relative paths. */
export function parseConfig(path: string, text: string): Config {
  const document = parseDocument(path, text);
  if (Object.hasOwn(document, "query")) throw usageError(QUERY_REMOVED);
  const { data, security, integrity, server, replay } = merged(path, DEFAULTS, document);
  const dir = dirname(absolutePath(path));
  const fail: Fail = (key, rule, got) => {
    throw usageError(`${path}: ${key} ${rule}, got ${shown(got)}`);
  };
  const pathOf = (key: string, value: string) => {
    if (value === "") fail(key, "must be a path", "an empty string");
    if (value.includes("\0")) fail(key, "must be a path", "a string with a NUL");
    return resolve(dir, value);
  };
  const config: Config = {
    path,
    dataDir: pathOf("[data] dir", data.dir),
    securityMode: choiceOf("[security] mode", security.mode, SECURITY_MODES, fail),
    integrityAnchor: choiceOf("[integrity] anchor", integrity.anchor, INTEGRITY_ANCHORS, fail),
    socketPath: pathOf("[server] socket", server.socket),
    token: server.token,
    replay: replayLimits(replay, document.replay?.default_limit === undefined, fail),
  };
  checkToken(server.token, fail);
  checkSocketPath(config, fail);
  return config;
}

/** Reports only the position of a syntax error, since the line may contain the token. */
function parseDocument(path: string, text: string): Partial<Settings> {
  try {
    return parse(text, { integersAsBigInt: true });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split("\n", 1)[0]!.replace("Invalid TOML document: ", "");
    throw usageError(`${path}: line ${error.line}, column ${error.column}: ${reason}`);
  }
}

/** Returns a table's values and the defaults of missing keys. Checks only names and types. */
function merged<T extends object>(path: string, defaults: T, table: object, section = ""): T {
  const result = { ...defaults } as Record<string, unknown>;
  for (const [key, value] of Object.entries(table)) {
    const name = section === "" ? `[${shown(key)}]` : `${section} ${shown(key)}`;
    if (!Object.hasOwn(defaults, key)) {
      const known = Object.keys(defaults).join(", ");
      throw usageError(`${path}: ${name} is unknown; use one of ${known}`);
    }
    const usual = result[key];
    const [wanted, got] = [tomlTypeOf(usual), tomlTypeOf(value)];
    if (got !== wanted) throw usageError(`${path}: ${name} must be ${wanted}, got ${got}`);
    result[key] = wanted === "a table" ? merged(path, usual as object, value, name) : value;
  }
  return result as T;
}

/** Formats a key or a value for a message, truncated and on one line. */
function shown(value: unknown): string {
  const text = String(value);
  const isLong = text.length > CONFIG_VALUE_SHOWN_MAX;
  return text.slice(0, CONFIG_VALUE_SHOWN_MAX).replaceAll(/\p{Cc}/gu, "?") + (isLong ? "..." : "");
}

/** Throws a usage error about a key. */
type Fail = (key: string, rule: string, got: string | number | bigint) => never;

function choiceOf<T extends string>(
  key: string,
  value: string,
  known: readonly T[],
  fail: Fail,
): T {
  return known.find((name) => name === value) ?? fail(key, `must be "${known[0]}"`, `"${value}"`);
}

function checkToken(token: string, fail: Fail): void {
  const sizeBytes = Buffer.byteLength(token);
  if (sizeBytes > TOKEN_BYTES_MAX) {
    fail("[server] token", `must be at most ${TOKEN_BYTES_MAX} bytes`, sizeBytes);
  }
  if (!/^[\x20-\x7e]*$/.test(token) || token !== token.trim()) {
    const got = "something else (not shown)";
    fail("[server] token", "must be printable ASCII without surrounding spaces", got);
  }
}

/** Lowers an implicit `default_limit` to `max_limit`; an explicit one must not exceed it. */
function replayLimits(limits: Settings["replay"], isImplicit: boolean, fail: Fail) {
  for (const [key, value] of Object.entries(limits)) {
    if (value < 1n) fail(`[replay] ${key}`, "must be at least 1", value);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
      fail(`[replay] ${key}`, `must be at most ${Number.MAX_SAFE_INTEGER}`, value);
    }
  }
  const [defaultLimit, maxLimit] = [Number(limits.default_limit), Number(limits.max_limit)];
  if (defaultLimit > maxLimit && !isImplicit) {
    fail("[replay] default_limit", `must be at most max_limit ${maxLimit}`, defaultLimit);
  }
  return { defaultLimit: Math.min(defaultLimit, maxLimit), maxLimit };
}

function checkSocketPath({ dataDir, socketPath }: Config, fail: Fail): void {
  const sizeBytes = Buffer.byteLength(socketPath);
  if (sizeBytes > SOCKET_PATH_BYTES_MAX) {
    const rule = `must be at most ${SOCKET_PATH_BYTES_MAX} bytes as an absolute path`;
    fail("[server] socket", rule, `${sizeBytes} bytes: ${socketPath}`);
  }
  if (isWithin(socketPath, join(dataDir, "log"))) {
    fail("[server] socket", "must be outside the log directory", socketPath);
  }
}

/** Returns the type of a value with its article: `an integer`, `a table`. */
function tomlTypeOf(value: unknown): string {
  if (value instanceof TomlDate) return "a date";
  if (Array.isArray(value)) return "an array";
  const names: Record<string, string> = { bigint: "an integer", number: "a float" };
  return names[typeof value] ?? (typeof value === "object" ? "a table" : `a ${typeof value}`);
}

/**
 * The configuration: keys, validation and defaults. All keys are optional. An invalid file is a
 * usage error (exit status 2) that names the file, key and reason, and never shows the token.
 */
import { Buffer } from "node:buffer";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parse, TomlDate, TomlError } from "smol-toml";
import { TOKEN_BYTES_MAX } from "../limits.ts";
import { SOCKET_PATH_BYTES_MAX } from "../socket_path.ts";
import { CONFIG_TEMPLATE } from "./config_template.ts";
import { CommandError, EXIT_UNSUPPORTED, usageError } from "./exit.ts";
import { errorCode } from "../log/storage/storage.ts";
import { describeError } from "./system_error.ts";

/** Values are strings, `bigint` integers, `number` floats, booleans, dates, arrays or tables. */
type TomlTable = Record<string, unknown>;

/** Maximum length of a value quoted in a message, in UTF-16 code units. */
const CONFIG_VALUE_SHOWN_MAX = 200;

/** Maximum size of a configuration file. Its seven keys need far less. */
export const CONFIG_FILE_BYTES_MAX: number = 64 * 1024;

/** A validated configuration. Paths are absolute. */
export interface Config {
  /** The path given on the command line, for messages. */
  path: string;
  dataDir: string;
  securityMode: SecurityMode;
  integrityAnchor: IntegrityAnchor;
  socketPath: string;
  /** Empty if no authentication is required. */
  token: string;
  replay: { defaultLimit: number; maxLimit: number };
}

const SECURITY_MODES = ["open", "governed", "locked"] as const;
const INTEGRITY_ANCHORS = ["none", "signed", "mirrored", "witnessed"] as const;
export type SecurityMode = typeof SECURITY_MODES[number];
export type IntegrityAnchor = typeof INTEGRITY_ANCHORS[number];

/** Known sections and keys with their defaults. */
const DEFAULTS = parse(CONFIG_TEMPLATE, { integersAsBigInt: true }) as Record<string, TomlTable>;

const QUERY_REMOVED = "The [query] section is no longer supported. Remove it from service.toml.";

/**
 * Resolves a path against the working directory.
 * @throws {CommandError} with exit status 2 if it is not UTF-8. The runtimes replace such bytes
 *   with U+FFFD, which would lead to another directory, or fail.
 */
export function absolutePath(path: string): string {
  let absolute = "\uFFFD";
  try {
    absolute = resolve(path);
  } catch {
    // Deno does not return a working directory that is not UTF-8.
  }
  if (!absolute.includes("\uFFFD")) return absolute;
  throw usageError(`${path}: its absolute path is not valid UTF-8; rename the directory`);
}

/** Reads and validates a configuration file. @throws {CommandError} with exit status 2. */
export async function loadConfig(path: string): Promise<Config> {
  absolutePath(path);
  return parseConfig(path, await readConfigFile(path));
}

/**
 * Returns the contents of a configuration file, which must be a small regular file in UTF-8.
 * @throws {CommandError} with exit status 2 if it cannot be read.
 */
export async function readConfigFile(path: string): Promise<string> {
  const file = await openConfigFile(path);
  try {
    const stat = await file.stat();
    if (stat.isDirectory()) throw usageError(`${path}: is a directory, not a configuration file`);
    if (!stat.isFile()) throw usageError(`${path}: not a regular file`);
    const bytes = Buffer.alloc(CONFIG_FILE_BYTES_MAX + 1);
    let sizeBytes = 0;
    for (let read = 1; read > 0 && sizeBytes < bytes.length; sizeBytes += read) {
      read = (await file.read(bytes, sizeBytes, bytes.length - sizeBytes)).bytesRead;
    }
    if (sizeBytes > CONFIG_FILE_BYTES_MAX) {
      throw usageError(
        `${path} is larger than ${CONFIG_FILE_BYTES_MAX} bytes, the configuration file limit`,
      );
    }
    return decode(path, bytes.subarray(0, sizeBytes));
  } finally {
    await file.close();
  }
}

/** Opens with O_NONBLOCK, which keeps open() from blocking on a FIFO. */
async function openConfigFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") {
      throw usageError(`${path}: cannot be opened: ${describeError(error)}`);
    }
    throw usageError(`${path}: no such file; specify it with --config, or create one with init`);
  }
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${path}: not valid UTF-8`);
  }
}

/**
 * Refuses a security mode other than `open` and an integrity anchor other than `none`, so that a
 * configured guarantee that this program cannot provide is never silently ignored.
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

/**
 * Validates the contents of the configuration file at `path`, whose directory is the base for
 * relative paths.
 * @throws {CommandError} with exit status 2.
 */
export function parseConfig(path: string, text: string): Config {
  const document = parseDocument(path, text);
  refuseUnknownKeys(path, document);
  const reader = new KeyReader(path, document);
  const dir = dirname(absolutePath(path));
  const config: Config = {
    path,
    dataDir: resolve(dir, reader.path("data", "dir")),
    securityMode: reader.choice("security", "mode", SECURITY_MODES),
    integrityAnchor: reader.choice("integrity", "anchor", INTEGRITY_ANCHORS),
    socketPath: resolve(dir, reader.path("server", "socket")),
    token: reader.token(),
    replay: replayLimits(reader),
  };
  checkSocketPath(config, reader);
  return config;
}

/** Reports only the position of a syntax error, since the line may contain the token. */
function parseDocument(path: string, text: string): TomlTable {
  try {
    return parse(text, { integersAsBigInt: true });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split("\n", 1)[0]!.replace("Invalid TOML document: ", "");
    throw usageError(`${path}: line ${error.line}, column ${error.column}: ${reason}`);
  }
}

function refuseUnknownKeys(path: string, document: TomlTable): void {
  if (Object.hasOwn(document, "query")) throw usageError(QUERY_REMOVED);
  for (const [section, keys] of Object.entries(document)) {
    const keysOf = Object.hasOwn(DEFAULTS, section) ? DEFAULTS[section] : undefined;
    if (keysOf === undefined) {
      throw usageError(`${path}: unknown section or key ${keyText(section)}; ${known(DEFAULTS)}`);
    }
    if (tomlTypeOf(keys) !== "a table") {
      throw usageError(`${path}: [${section}] must be a table, got ${tomlTypeOf(keys)}`);
    }
    for (const key of Object.keys(keys as TomlTable)) {
      if (!Object.hasOwn(keysOf, key)) {
        throw usageError(`${path}: [${section}] unknown key ${keyText(key)}; ${known(keysOf)}`);
      }
    }
  }
}

function known(names: object): string {
  return `use one of ${Object.keys(names).join(", ")}`;
}

/** Formats a key for a message, quoted if it has unusual characters. */
function keyText(key: string): string {
  return /^[A-Za-z0-9_-]{1,64}$/.test(key) ? key : JSON.stringify(key.slice(0, 64));
}

/** Formats a value for a message, truncated and on one line. */
function shown(value: string): string {
  const isLong = value.length > CONFIG_VALUE_SHOWN_MAX;
  return value.slice(0, CONFIG_VALUE_SHOWN_MAX).replaceAll(/\p{Cc}/gu, "?") + (isLong ? "..." : "");
}

/** Lowers an implicit `default_limit` to `max_limit`; an explicit one must not exceed it. */
function replayLimits(reader: KeyReader): Config["replay"] {
  const maxLimit = reader.limit("replay", "max_limit");
  const defaultLimit = reader.limit("replay", "default_limit");
  if (defaultLimit <= maxLimit) return { defaultLimit, maxLimit };
  if (!reader.has("replay", "default_limit")) return { defaultLimit: maxLimit, maxLimit };
  const rule = `must be at most max_limit ${maxLimit}`;
  return reader.fail("replay", "default_limit", rule, defaultLimit);
}

function checkSocketPath(config: Config, reader: KeyReader): void {
  const sizeBytes = Buffer.byteLength(config.socketPath);
  if (sizeBytes > SOCKET_PATH_BYTES_MAX) {
    const rule = `must be at most ${SOCKET_PATH_BYTES_MAX} bytes as an absolute path`;
    reader.fail("server", "socket", rule, `${sizeBytes} bytes: ${config.socketPath}`);
  }
  const logDir = join(config.dataDir, "log");
  if (config.socketPath === logDir || config.socketPath.startsWith(`${logDir}/`)) {
    reader.fail("server", "socket", "must be outside the log directory", config.socketPath);
  }
}

/** Reads typed values from a document whose section and key names have been checked. */
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

  has(section: string, key: string): boolean {
    return (this.#document[section] as TomlTable | undefined)?.[key] !== undefined;
  }

  path(section: string, key: string): string {
    const value = this.#string(section, key);
    if (value === "") this.fail(section, key, "must be a path", "an empty string");
    if (value.includes("\0")) this.fail(section, key, "must be a path", "a string with a NUL");
    return value;
  }

  /** Returns one of `known`; the first is the default. */
  choice<T extends string>(section: string, key: string, known: readonly T[]): T {
    const value = this.#string(section, key);
    const choice = known.find((name) => name === value);
    if (choice !== undefined) return choice;
    return this.fail(section, key, `must be "${known[0]}"`, JSON.stringify(value.slice(0, 64)));
  }

  token(): string {
    const token = this.#string("server", "token");
    const sizeBytes = Buffer.byteLength(token);
    if (sizeBytes > TOKEN_BYTES_MAX) {
      this.fail("server", "token", `must be at most ${TOKEN_BYTES_MAX} bytes`, sizeBytes);
    }
    if (!/^[\x20-\x7e]*$/.test(token) || token !== token.trim()) {
      const got = "something else (not shown)";
      this.fail("server", "token", "must be printable ASCII without surrounding spaces", got);
    }
    return token;
  }

  /** Returns a positive safe integer. */
  limit(section: string, key: string): number {
    const value = this.#value(section, key);
    if (typeof value !== "bigint") {
      return this.fail(section, key, "must be an integer", tomlTypeOf(value));
    }
    if (value < 1n) this.fail(section, key, "must be at least 1", value);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
      this.fail(section, key, `must be at most ${Number.MAX_SAFE_INTEGER}`, value);
    }
    return Number(value);
  }

  #string(section: string, key: string): string {
    const value = this.#value(section, key);
    if (typeof value === "string") return value;
    return this.fail(section, key, "must be a string", tomlTypeOf(value));
  }

  #value(section: string, key: string): unknown {
    const table = this.has(section, key) ? this.#document : DEFAULTS;
    return (table[section] as TomlTable)[key];
  }
}

/** Returns the type of a value with its article: `an integer`, `a table`. */
function tomlTypeOf(value: unknown): string {
  if (value instanceof TomlDate) return "a date";
  if (Array.isArray(value)) return "an array";
  const names: Record<string, string> = { bigint: "an integer", number: "a float" };
  return names[typeof value] ?? (typeof value === "object" ? "a table" : `a ${typeof value}`);
}

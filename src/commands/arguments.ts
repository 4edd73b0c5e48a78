/**
 * Command-line arguments -> one invocation. `parseArgs` of `node:util` splits them into tokens;
 * what they mean is decided here, so that both runtimes answer a mistake with the same words.
 */
import { parseArgs } from "node:util";
import { usageError } from "./exit.ts";

/** What the arguments ask for. Paths are as given. */
export type Invocation =
  | { command: "help" }
  | { command: "version" }
  | { command: "init"; dir: string }
  | { command: "serve"; configPath: string }
  | { command: "seal"; configPath: string }
  | { command: "verify"; configPath: string; chain: boolean };

export const DEFAULT_CONFIG_PATH = "service.toml";

const OPTIONS = {
  config: { type: "string" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "V" },
  chain: { type: "boolean" },
} as const;

type OptionName = keyof typeof OPTIONS;
type Options = Partial<Record<OptionName, string>>;

const COMMANDS = ["init", "serve", "seal", "verify"] as const;

const REMOVED_COMMANDS = new Map([
  ["project", "consumers build derived views from replay or follow"],
  ["rebuild", "consumers build derived views from replay or follow"],
  ["query", "consumers build derived views from replay or follow"],
  ["catalog", "GET /v1/streams lists what the log holds"],
  ["import", "connectors submit batches to POST /v1/events"],
  ["erase-payload", "the log is append-only"],
  ["export-key", "the log is not encrypted"],
]);

/** @throws {CommandError} exit status 2 for anything that is not one of the forms in `--help`. */
export function parseArguments(args: string[]): Invocation {
  const { options, positionals } = splitArguments(args);
  if (options.help !== undefined) return { command: "help" };
  if (options.version !== undefined) return { command: "version" };

  const [name, ...operands] = positionals;
  if (name === undefined) throw usageError("no command given");
  const command = commandNamed(name);
  if (options.chain !== undefined && command !== "verify") {
    throw usageError(`${command} takes no option --chain`);
  }
  if (command === "init") {
    refuseOperands(command, operands.slice(1));
    return { command, dir: initDir(operands[0]) };
  }
  refuseOperands(command, operands);
  const configPath = options.config ?? DEFAULT_CONFIG_PATH;
  return command === "verify"
    ? { command, configPath, chain: options.chain !== undefined }
    : { command, configPath };
}

function splitArguments(args: string[]): { options: Options; positionals: string[] } {
  const { tokens } = parseArgs({
    args,
    options: OPTIONS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const options: Options = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const name = optionNamed(token.name, token.rawName);
    if (name === "config" && options.config !== undefined) {
      throw usageError("--config is given more than once");
    }
    options[name] = optionValue(name, token.value, token.inlineValue);
  }
  return { options, positionals };
}

function optionNamed(name: string, rawName: string): OptionName {
  if (Object.hasOwn(OPTIONS, name)) return name as OptionName;
  if (name === "clean") throw usageError("unknown option --clean: verify never deletes anything");
  throw usageError(`unknown option ${rawName}`);
}

/** A value that looks like an option means that one was forgotten, except in `--config=-x`. */
function optionValue(
  name: OptionName,
  value: string | undefined,
  isInline: boolean | undefined,
): string {
  if (OPTIONS[name].type === "boolean") {
    if (value !== undefined) throw usageError(`--${name} takes no value`);
    return "";
  }
  if (value === undefined || value === "" || (value.startsWith("-") && isInline !== true)) {
    throw usageError(`--${name} needs a path`);
  }
  return value;
}

function commandNamed(name: string): typeof COMMANDS[number] {
  const command = COMMANDS.find((known) => known === name);
  if (command !== undefined) return command;
  const reason = REMOVED_COMMANDS.get(name);
  if (reason !== undefined) throw usageError(`there is no command ${name}: ${reason}`);
  const near = COMMANDS.find((known) => isNear(known, name));
  throw usageError(
    `unknown command ${JSON.stringify(name)}${near === undefined ? "" : `; did you mean ${near}?`}`,
  );
}

/** Whether one letter added, dropped, changed or swapped with its neighbour makes `b` of `a`. */
function isNear(a: string, b: string): boolean {
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const [restA, restB] = [a.slice(start), b.slice(start)];
  const swapped = `${restA[1] ?? ""}${restA[0] ?? ""}${restA.slice(2)}`;
  return restA.slice(1) === restB.slice(1) || restA.slice(1) === restB ||
    restA === restB.slice(1) || swapped === restB;
}

function initDir(dir: string | undefined): string {
  if (dir === "") throw usageError("init needs a folder, got an empty path");
  return dir ?? ".";
}

function refuseOperands(command: string, operands: string[]): void {
  if (operands.length > 0) {
    throw usageError(`${command}: unexpected argument ${JSON.stringify(operands[0])}`);
  }
}

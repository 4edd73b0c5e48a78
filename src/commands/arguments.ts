/**
 * Parses command-line arguments. `parseArgs` of `node:util` only splits them into tokens, so that
 * error messages are the same in all runtimes.
 */
import { parseArgs } from "node:util";
import {
  COMMAND_NAMES,
  type CommandName,
  COMMANDS,
  DEFAULT_CONFIG_PATH,
  OPTION_NAMES,
  type OptionName,
  OPTIONS,
  type Shell,
  SHELLS,
} from "./command_table.ts";
import { usageError } from "./exit.ts";

/** A parsed command line. Paths are as given. */
export type Invocation =
  | { command: "help"; about: CommandName | null }
  | { command: "version" }
  | { command: "completions"; shell: Shell }
  | { command: "man" }
  | { command: "init"; dir: string }
  | { command: "serve"; configPath: string }
  | { command: "seal"; configPath: string }
  | { command: "verify"; configPath: string; chain: boolean };

type Options = Partial<Record<OptionName, string>>;

/** Parses arguments. @throws {CommandError} with exit status 2 if they are invalid. */
export function parseArguments(args: string[]): Invocation {
  const { options, positionals } = splitArguments(args);
  const [name, ...operands] = positionals;
  if (options.help !== undefined) {
    return { command: "help", about: COMMAND_NAMES.find((known) => known === name) ?? null };
  }
  if (options.version !== undefined) return { command: "version" };
  if (options.completions !== undefined) {
    const shell = named(SHELLS, options.completions, "--completions: unknown shell", "use");
    return { command: "completions", shell };
  }
  if (options.man !== undefined) return { command: "man" };

  if (name === undefined) {
    throw usageError(`missing command; use one of ${COMMAND_NAMES.join(", ")}`);
  }
  const command = named(COMMAND_NAMES, name, "unknown command", "use one of");
  if (options.chain !== undefined && !COMMANDS[command].options.includes("chain")) {
    throw usageError(`${command} does not accept --chain`);
  }
  if (command === "init") {
    const [dir = ".", ...others] = operands;
    refuseOperands(command, others);
    if (dir === "") throw usageError("init requires a directory, got an empty path");
    return { command, dir };
  }
  refuseOperands(command, operands);
  const configPath = options.config ?? DEFAULT_CONFIG_PATH;
  return command === "verify"
    ? { command, configPath, chain: options.chain !== undefined }
    : { command, configPath };
}

function splitArguments(args: string[]): { options: Options; positionals: string[] } {
  const known = OPTION_NAMES.map((name) => {
    const type: "boolean" | "string" = OPTIONS[name].value === undefined ? "boolean" : "string";
    return [name, { type, ...OPTIONS[name] }] as const;
  });
  const parsing = { strict: false, allowPositionals: true, tokens: true } as const;
  const { tokens } = parseArgs({ args, options: Object.fromEntries(known), ...parsing });
  const options: Options = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const name = OPTION_NAMES.find((known) => known === token.name);
    if (name === undefined) throw usageError(`unknown option ${token.rawName}`);
    if (OPTIONS[name].value !== undefined && options[name] !== undefined) {
      throw usageError(`--${name} may be given only once`);
    }
    options[name] = optionValue(name, token.value, token.inlineValue);
  }
  return { options, positionals };
}

/** Rejects a value that looks like an option, except in `--config=-x`. */
function optionValue(
  name: OptionName,
  value: string | undefined,
  isInline: boolean | undefined,
): string {
  const kind = OPTIONS[name].value;
  if (kind === undefined) {
    if (value !== undefined) throw usageError(`--${name} does not accept a value`);
    return "";
  }
  if (value === undefined || value === "" || (value.startsWith("-") && isInline !== true)) {
    throw usageError(`--${name} requires a ${kind.toLowerCase()}: --${name} <${kind}>`);
  }
  return value;
}

/** Returns the one of `known` that has this name. @param use advice in the error message. */
function named<T extends string>(
  known: readonly T[],
  name: string,
  unknown: string,
  use: string,
): T {
  const found = known.find((each) => each === name);
  if (found !== undefined) return found;
  throw usageError(`${unknown} ${JSON.stringify(name)}; ${use} ${known.join(", ")}`);
}

function refuseOperands(command: string, operands: string[]): void {
  if (operands.length > 0) {
    throw usageError(`${command}: unexpected argument ${JSON.stringify(operands[0])}`);
  }
}

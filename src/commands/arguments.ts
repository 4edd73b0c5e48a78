/** Parses command-line arguments. */
import { parseArgs } from "node:util";
import {
  COMMAND_NAMES,
  type CommandName,
  COMMANDS,
  DEFAULT_CONFIG_PATH,
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
  | { command: "verify"; configPath: string; chain: boolean }
  | { command: "append" | "tail" | "streams"; configPath: string; options: Options }
  | { command: "backup"; configPath: string; dir: string; keep: number | null };

/** Values of the options that were given; empty for those without a value. */
export type Options = Partial<Record<OptionName, string>>;

/** Parses arguments. @throws {CommandError} with exit status 2 if they are invalid. */
export function parseArguments(args: string[]): Invocation {
  const { options, positionals: [name, ...operands] } = splitArguments(args);
  const { config, help: _help, version: _version, man: _man, completions: _shell, ...own } =
    options;
  if (options.help !== undefined) {
    return { command: "help", about: COMMAND_NAMES.find((known) => known === name) ?? null };
  }
  if (options.version !== undefined) return { command: "version" };
  if (options.completions !== undefined) {
    return { command: "completions", shell: named("shell", options.completions, SHELLS) };
  }
  if (options.man !== undefined) return { command: "man" };

  if (name === undefined) {
    throw usageError(`missing command; use one of ${COMMAND_NAMES.join(", ")}`);
  }
  const command = named("command", name, COMMAND_NAMES);
  const { chain, keep } = own;
  for (const option of Object.keys(own) as OptionName[]) {
    if (COMMANDS[command].options.includes(option)) continue;
    throw usageError(`${command} does not accept --${option}`);
  }
  const { required } = COMMANDS[command];
  if (required !== undefined && required !== "DIR" && !(required in own)) {
    throw usageError(`${command} requires --${required}`);
  }
  const dir = COMMANDS[command].operand && operands.shift();
  if (dir === "") throw usageError(`${command} requires a directory, got an empty path`);
  if (operands.length > 0) {
    throw usageError(`${command}: unexpected argument ${JSON.stringify(operands[0])}`);
  }
  if (command === "init") return { command, dir: dir ?? "." };
  const configPath = config ?? DEFAULT_CONFIG_PATH;
  if (command === "verify") return { command, configPath, chain: chain !== undefined };
  if (command === "serve" || command === "seal") return { command, configPath };
  if (command !== "backup") return { command, configPath, options: own };
  if (dir === undefined) throw usageError("backup requires a directory");
  if (!/^([1-9]\d*)?$/.test(keep ?? "")) throw usageError("--keep requires a number from 1");
  return { command, configPath, dir, keep: keep === undefined ? null : Number(keep) };
}

/** Splits arguments into options, of which those without a value are empty, and the others. */
function splitArguments(args: string[]) {
  const parsing = { args, options: OPTIONS, allowPositionals: true, tokens: true } as const;
  try {
    const { tokens, positionals } = parseArgs(parsing);
    const options: Options = {};
    for (const token of tokens) {
      if (token.kind !== "option") continue;
      const name = token.name as OptionName;
      const { type, value } = OPTIONS[name];
      if (token.value === "") throw new Error(`--${name} requires a ${value!.toLowerCase()}`);
      if (type === "string" && name in options) throw new Error(`--${name} may be given only once`);
      options[name] = token.value ?? "";
    }
    return { options, positionals };
  } catch (error) {
    // The message of `parseArgs()` goes on with advice, on further lines.
    throw usageError((error as Error).message.split(/\.\s/, 1)[0]!);
  }
}

function named<T extends string>(what: string, name: string, known: readonly T[]): T {
  const found = known.find((each) => each === name);
  if (found !== undefined) return found;
  throw usageError(`unknown ${what} ${JSON.stringify(name)}; use one of ${known.join(", ")}`);
}

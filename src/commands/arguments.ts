/** Parses command-line arguments. */
import { parseArgs } from "node:util";
import { FULL_VERSION, VERSION } from "../version.ts";
import {
  COMMAND_NAMES,
  type CommandName,
  COMMANDS,
  type OptionName,
  OPTIONS,
  SHELLS,
} from "./command_table.ts";
import { usageError } from "./exit.ts";
import { completionsFor, manPage, usageText } from "./usage.ts";

/** What a command line asks for: a text to print, or a command. Paths are as given. */
export type Invocation =
  | { text: string }
  | { command: CommandName; dir: string | undefined; options: Options };

/** Values of the options that were given; empty for those without a value. */
export type Options = Partial<Record<OptionName, string>>;

/** Parses arguments. @throws {CommandError} with exit status 2 if they are invalid. */
export function parseArguments(args: string[]): Invocation {
  const { options, positionals: [name, ...operands] } = splitArguments(args);
  const text = textOf(options, name);
  if (text !== null) return { text };
  if (name === undefined) {
    throw usageError(`missing command; use one of ${COMMAND_NAMES.join(", ")}`);
  }
  const command = named("command", name, COMMAND_NAMES);
  const { options: accepted, operand, required } = COMMANDS[command];
  for (const option of Object.keys(options) as OptionName[]) {
    // `init` ignores the configuration.
    if (option === "config" || accepted.includes(option)) continue;
    throw usageError(`${command} does not accept --${option}`);
  }
  if (required !== undefined && required !== "DIR" && !(required in options)) {
    throw usageError(`${command} requires --${required}`);
  }
  const dir = operand && operands.shift();
  if (dir === "") throw usageError(`${command} requires a directory, got an empty path`);
  if (operands.length > 0) {
    throw usageError(`${command}: unexpected argument ${JSON.stringify(operands[0])}`);
  }
  if (dir === undefined && required === "DIR") throw usageError(`${command} requires a directory`);
  if (!/^([1-9]\d*)?$/.test(options.keep ?? "")) {
    throw usageError("--keep requires a number from 1");
  }
  return { command, dir, options };
}

/** Returns the text that an option asks for; null if none does. */
function textOf({ help, version, completions, man }: Options, command?: string): string | null {
  if (help !== undefined) return usageText(COMMAND_NAMES.find((name) => name === command) ?? null);
  if (version !== undefined) return `${FULL_VERSION}\n`;
  if (completions !== undefined) return completionsFor(named("shell", completions, SHELLS));
  return man === undefined ? null : manPage(VERSION);
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

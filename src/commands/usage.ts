/** The output of `--help`, generated from the command table. */
import {
  COMMAND_NAMES,
  type CommandName,
  COMMANDS,
  DESCRIPTION,
  ENVIRONMENT,
  type Example,
  EXITS,
  OPTION_NAMES,
  optionForm,
  type OptionName,
  OPTIONS,
  optionsOf,
  optionTerm,
  PROGRAM,
} from "./command_table.ts";

const WIDTH = 80;
const INDENT = "  ";

/** Returns the help of a command, or of the program for null. */
export function usageText(command: CommandName | null): string {
  return command === null ? programUsage() : commandUsage(command);
}

/** Formats a command for a usage line: `verify [--config <PATH>] [--chain]`. */
export function commandForm(command: CommandName): string {
  const { operand } = COMMANDS[command];
  const options = optionsOf(command).filter((name) => name !== "help");
  return [
    command,
    ...options.map((name) => `[${optionForm(name)}]`),
    ...operand === undefined ? [] : [`[${operand}]`],
  ].join(" ");
}

function programUsage(): string {
  const commands = COMMAND_NAMES.map((name): Row => [shortForm(name), COMMANDS[name].summary]);
  const options = OPTION_NAMES.filter((name) => name !== "chain").map(optionRow);
  return [
    wrap(DESCRIPTION),
    `Usage: ${PROGRAM} [--config <PATH>] <COMMAND>`,
    section("Commands", rows(commands)),
    section("Options", rows(options)),
    section("Exit status", rows(Object.entries(EXITS))),
    section("Environment", rows(Object.entries(ENVIRONMENT))),
    wrap(`Run ${PROGRAM} <COMMAND> --help for details and examples of a command.`),
  ].join("\n\n") + "\n";
}

function commandUsage(command: CommandName): string {
  const { summary, description, examples, exits } = COMMANDS[command];
  return [
    wrap(`${summary}.`),
    `Usage: ${PROGRAM} ${commandForm(command)}`,
    ...description.map((paragraph) => wrap(paragraph)),
    section("Options", rows(optionsOf(command).map(optionRow))),
    section("Examples", examples.map(exampleText).join("\n")),
    section("Exit status", rows(Object.entries(exits))),
  ].join("\n\n") + "\n";
}

/** Formats a command with its own options only: `verify [--chain]`. */
function shortForm(command: CommandName): string {
  const { operand, options } = COMMANDS[command];
  const own = [...options.map(optionForm), ...operand === undefined ? [] : [operand]];
  return [command, ...own.map((form) => `[${form}]`)].join(" ");
}

function optionRow(name: OptionName): Row {
  return [optionTerm(name), OPTIONS[name].effect];
}

function exampleText({ line, effect }: Example): string {
  return `${INDENT}# ${effect}\n${INDENT}${line}`;
}

function section(title: string, body: string): string {
  return `${title}:\n${body}`;
}

type Row = [term: string, text: string];

/** Formats two columns, the second wrapped. */
function rows(entries: Row[]): string {
  const termWidth = Math.max(...entries.map(([term]) => term.length)) + INDENT.length;
  const margin = " ".repeat(INDENT.length + termWidth);
  return entries.map(([term, text]) => {
    const wrapped = wrap(text, WIDTH - margin.length).replaceAll("\n", `\n${margin}`);
    return INDENT + term.padEnd(termWidth) + wrapped;
  }).join("\n");
}

/** Wraps text at spaces; only a long word exceeds the width. */
function wrap(text: string, width = WIDTH): string {
  let column = 0;
  return text.split(" ").map((word, index) => {
    const isFirst = index === 0;
    const fits = !isFirst && column + 1 + word.length <= width;
    column = fits ? column + 1 + word.length : word.length;
    return isFirst ? word : (fits ? " " : "\n") + word;
  }).join("");
}

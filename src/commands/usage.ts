/** What `--help` prints, made from the table of commands. */
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

/** @param command the one to tell about; null: the program. */
export function usageText(command: CommandName | null): string {
  return command === null ? programUsage() : commandUsage(command);
}

/** What a usage line says behind the program's name: `verify [--config <PATH>] [--chain]`. */
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
    wrap(`Run ${PROGRAM} <COMMAND> --help for more about a command, with an example.`),
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

/** A command with what only it takes: `verify [--chain]`. */
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

/** Two columns, the second wrapped. */
function rows(entries: Row[]): string {
  const termWidth = Math.max(...entries.map(([term]) => term.length)) + INDENT.length;
  const margin = " ".repeat(INDENT.length + termWidth);
  return entries.map(([term, text]) => {
    const wrapped = wrap(text, WIDTH - margin.length).replaceAll("\n", `\n${margin}`);
    return INDENT + term.padEnd(termWidth) + wrapped;
  }).join("\n");
}

/** Breaks a text at spaces so that no line is wider, unless a word is. */
function wrap(text: string, width = WIDTH): string {
  let column = 0;
  return text.split(" ").map((word, index) => {
    const isFirst = index === 0;
    const fits = !isFirst && column + 1 + word.length <= width;
    column = fits ? column + 1 + word.length : word.length;
    return isFirst ? word : (fits ? " " : "\n") + word;
  }).join("");
}

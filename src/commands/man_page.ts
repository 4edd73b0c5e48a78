/** The manual page, generated from the command table: troff with the macros of man(7). */
import {
  COMMAND_NAMES,
  type CommandName,
  COMMANDS,
  DEFAULT_CONFIG_PATH,
  DESCRIPTION,
  ENVIRONMENT,
  EXITS,
  OPTION_NAMES,
  optionForm,
  OPTIONS,
  optionTerm,
  PROGRAM,
  STANDALONE_OPTIONS,
} from "./command_table.ts";
import { commandForm } from "./usage.ts";

const FILES: Readonly<Record<string, string>> = {
  [DEFAULT_CONFIG_PATH]: "The configuration. Relative paths in it start at its directory.",
  "data/log/": "The log. Never edit, rename or delete its files, not even .lock.",
  "data/ground.sock": "The default socket.",
};

/** Returns the manual page. @param version as printed by `--version`. */
export function manPage(version: string): string {
  return [
    `.TH ${PROGRAM.toUpperCase()} 1 "" ${quoted(`${PROGRAM} ${version}`)} "User Commands"`,
    ".SH NAME",
    `${PROGRAM} \\- ${escaped(DESCRIPTION[0]!.toLowerCase() + DESCRIPTION.slice(1, -1))}`,
    ".SH SYNOPSIS",
    ...[...COMMAND_NAMES.map(commandForm), ...STANDALONE_OPTIONS.map(optionForm)]
      .flatMap((form) => [".B " + escaped(`${PROGRAM} ${form}`), ".br"]),
    ".SH DESCRIPTION",
    escaped(DESCRIPTION),
    ".SH COMMANDS",
    ...COMMAND_NAMES.flatMap(commandLines),
    ".SH OPTIONS",
    ...OPTION_NAMES.flatMap((name) => entry(optionTerm(name), OPTIONS[name].effect + ".")),
    ".SH FILES",
    ...entries(FILES),
    ".SH ENVIRONMENT",
    ...entries(ENVIRONMENT),
    ".SH EXIT STATUS",
    ...entries(EXITS),
    ".SH EXAMPLES",
    ...COMMAND_NAMES.flatMap((name) => COMMANDS[name].examples.flatMap(exampleLines)),
  ].join("\n") + "\n";
}

function commandLines(name: CommandName): string[] {
  const { summary, description } = COMMANDS[name];
  return [
    `.SS ${quoted(commandForm(name))}`,
    escaped(`${summary}.`),
    ...description.flatMap((paragraph) => [".PP", escaped(paragraph)]),
  ];
}

function entries(table: Readonly<Record<string, string>>): string[] {
  return Object.entries(table).flatMap(([term, text]) => entry(term, text));
}

function entry(term: string, text: string): string[] {
  return [".TP", ".B " + escaped(term), escaped(text[0]!.toUpperCase() + text.slice(1))];
}

function exampleLines({ line, effect }: { line: string; effect: string }): string[] {
  return [".PP", escaped(`${effect}:`), ".PP", ".nf", ".RS", escaped(line), ".RE", ".fi"];
}

/** Escapes text for troff: hyphens that can be copied, no line that is a request. */
function escaped(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^([.'])/, "\\&$1");
}

function quoted(text: string): string {
  return `"${escaped(text)}"`;
}

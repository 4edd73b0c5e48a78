/** The output of `--help`, `--man` and `--completions`, generated from the command table. */
import {
  COMMAND_NAMES,
  type CommandName,
  COMMANDS,
  DESCRIPTION,
  EXITS,
  OPTION_NAMES,
  type OptionName,
  OPTIONS,
  PROGRAM,
  type Shell,
  SHELLS,
} from "./command_table.ts";
import { CONFIG_TEMPLATE } from "./config_template.ts";
import { EXIT_USAGE } from "./exit.ts";

/** Line width. The indentation of a manual page adds seven columns. */
const WIDTH = 72;
const INDENT = "  ";

/** Returns the help for a command; null for the program. */
export function usageText(command: CommandName | null): string {
  return command === null ? programUsage() : commandUsage(command);
}

/**
 * Returns the manual page: all help text unchanged, in troff with man(7) macros.
 * @param version as printed by `--version`.
 */
export function manPage(version: string): string {
  const name = `${PROGRAM} - ${DESCRIPTION[0]!.toLowerCase()}${DESCRIPTION.slice(1, -1)}`;
  const section = (command: CommandName | null) => [
    `.SH ${(command ?? "synopsis").toUpperCase()}`,
    ".nf",
    ...escaped(usageText(command).trimEnd()).split("\n"),
    ".fi",
  ];
  return [
    `.TH ${PROGRAM.toUpperCase()} 1 "" "${escaped(`${PROGRAM} ${version}`)}" "User Commands"`,
    ".SH NAME",
    escaped(name),
    ...[null, ...COMMAND_NAMES].flatMap(section),
  ].join("\n") + "\n";
}

/** Escapes text for troff, so that hyphens can be copied and no line is taken for a request. */
function escaped(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll(/^([.'])/gm, "\\&$1");
}

function programUsage(): string {
  const commands = COMMAND_NAMES.map((name): Row => [name, COMMANDS[name].summary]);
  return [
    wrap(DESCRIPTION),
    `Usage: ${PROGRAM} [--config <PATH>] <COMMAND>`,
    section("Commands", rows(commands)),
    section("Options", optionRows(OPTION_NAMES)),
    section("Configuration file", CONFIG_TEMPLATE.trimEnd().replaceAll(/^(?=.)/gm, INDENT)),
    section("Exit status", rows(Object.entries(EXITS))),
    wrap(`Run ${PROGRAM} <COMMAND> --help for its options and an example.`),
  ].join("\n\n") + "\n";
}

function commandUsage(command: CommandName): string {
  const { operand, options, required, exits = [], example, summary, description } =
    COMMANDS[command];
  const forms = options.filter((name) => name !== "help").map((name) => {
    return name === required ? optionForm(name) : `[${optionForm(name)}]`;
  });
  if (operand !== undefined) forms.push(operand === required ? operand : `[${operand}]`);
  const statuses = Object.entries(EXITS).filter(([status]) =>
    Number(status) <= EXIT_USAGE || exits.includes(Number(status))
  );
  return [
    wrap(`${summary}.`),
    wrap(description),
    wrap(["Usage:", PROGRAM, command, ...forms].join(" ")),
    section("Options", optionRows(options)),
    section("Example", `${INDENT}${PROGRAM} ${command} ${example}`),
    section("Exit status", rows(statuses)),
  ].join("\n\n") + "\n";
}

function optionRows(names: readonly OptionName[]): string {
  return rows(names.map((name) => {
    const { short, effect } = OPTIONS[name];
    return [(short === undefined ? "" : `-${short}, `) + optionForm(name), effect];
  }));
}

/** Formats an option for a usage line: `--config <PATH>`. */
function optionForm(name: OptionName): string {
  const { value } = OPTIONS[name];
  return value === undefined ? `--${name}` : `--${name} <${value}>`;
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

/** Wraps text at spaces. */
function wrap(text: string, width = WIDTH): string {
  return text.replaceAll(new RegExp(`(.{1,${width}})( |$)`, "g"), "$1\n").trimEnd();
}

const FUNCTION = `_${PROGRAM}`;

/** Returns the completion script for a shell, which begins by saying where to install it. */
export function completionsFor(shell: Shell): string {
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell]();
}

/** Offers no words where a path is expected, so that bash completes file names. */
function bashScript(): string {
  const words = [...COMMAND_NAMES, ...OPTION_NAMES.map((name) => `--${name}`)];
  return `# bash completion for ${PROGRAM}; save it as
# ~/.local/share/bash-completion/completions/${PROGRAM}
${FUNCTION}() {
  local word=\${COMP_WORDS[COMP_CWORD]} offered="${words.join(" ")}"
  case \${COMP_WORDS[COMP_CWORD-1]} in
    --config | init | backup) offered="" ;;
    --completions) offered="${SHELLS.join(" ")}" ;;
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$word"))
}
complete -o default -F ${FUNCTION} ${PROGRAM}
`;
}

function zshScript(): string {
  return `#compdef ${PROGRAM}
# zsh completion for ${PROGRAM}; save it as ${FUNCTION} in a directory of $fpath, before compinit
${FUNCTION}() {
  _arguments \\
${OPTION_NAMES.map((name) => `    ${zshOption(name)} \\`).join("\n")}
    '1:command:(${COMMAND_NAMES.join(" ")})' \\
    '2:directory:_files -/'
}
if [[ \${funcstack[1]} == ${FUNCTION} ]]; then
  ${FUNCTION} "$@"
else
  compdef ${FUNCTION} ${PROGRAM}
fi
`;
}

/** Formats an option for `_arguments`. */
function zshOption(name: OptionName): string {
  const { value, effect } = OPTIONS[name];
  const actions: Record<string, string> = { PATH: "_files", SHELL: `(${SHELLS.join(" ")})` };
  return `'--${name}[${effect}]${value === undefined ? "" : `:${name}:${actions[value] ?? ""}`}'`;
}

function fishScript(): string {
  const noCommand = `-n 'not __fish_seen_subcommand_from ${COMMAND_NAMES.join(" ")}'`;
  const lines = [
    ...COMMAND_NAMES.map((name) => `${noCommand} -a ${name} -d '${COMMANDS[name].summary}'`),
    ...OPTION_NAMES.map(fishOption),
    "-n '__fish_seen_subcommand_from init backup' -a '(__fish_complete_directories)'",
  ];
  return `# fish completion for ${PROGRAM}; save it as ~/.config/fish/completions/${PROGRAM}.fish
complete -c ${PROGRAM} -f
${lines.map((line) => `complete -c ${PROGRAM} ${line}`).join("\n")}
`;
}

function fishOption(name: OptionName): string {
  const { value, effect } = OPTIONS[name];
  const actions: Record<string, string> = { PATH: " -r -F", SHELL: ` -x -a '${SHELLS.join(" ")}'` };
  return `-l ${name}${value === undefined ? "" : actions[value] ?? " -x"} -d '${effect}'`;
}

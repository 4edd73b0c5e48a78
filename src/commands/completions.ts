/**
 * Completions for bash, zsh and fish, generated from the command table. The first lines of each
 * script say where to install it.
 */
import {
  COMMAND_NAMES,
  COMMANDS,
  OPTION_NAMES,
  type OptionName,
  OPTIONS,
  PROGRAM,
  type Shell,
  SHELLS,
} from "./command_table.ts";

const FUNCTION = `_${PROGRAM}`;

/** Returns the completion script for a shell. */
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
    --config | init) offered="" ;;
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
  return `'--${name}[${effect}]${value === undefined ? "" : `:${name}:${actions[value]}`}'`;
}

function fishScript(): string {
  const noCommand = `-n 'not __fish_seen_subcommand_from ${COMMAND_NAMES.join(" ")}'`;
  const lines = [
    ...COMMAND_NAMES.map((name) => `${noCommand} -a ${name} -d '${COMMANDS[name].summary}'`),
    ...OPTION_NAMES.map(fishOption),
    "-n '__fish_seen_subcommand_from init' -a '(__fish_complete_directories)'",
  ];
  return `# fish completion for ${PROGRAM}; save it as ~/.config/fish/completions/${PROGRAM}.fish
complete -c ${PROGRAM} -f
${lines.map((line) => `complete -c ${PROGRAM} ${line}`).join("\n")}
`;
}

function fishOption(name: OptionName): string {
  const { value, effect } = OPTIONS[name];
  const actions: Record<string, string> = { PATH: " -r -F", SHELL: ` -x -a '${SHELLS.join(" ")}'` };
  return `-l ${name}${value === undefined ? "" : actions[value]} -d '${effect}'`;
}

/**
 * Completions for bash, zsh and fish, generated from the command table. The first lines of each
 * script say where to install it.
 */
import {
  COMMAND_NAMES,
  type CommandName,
  COMMANDS,
  OPTION_NAMES,
  type OptionName,
  OPTIONS,
  optionsOf,
  PROGRAM,
  type Shell,
  SHELLS,
  spellingsOf,
} from "./command_table.ts";

const FUNCTION = `_${PROGRAM}`;

/** Returns the completion script for a shell. */
export function completionsFor(shell: Shell): string {
  switch (shell) {
    case "bash":
      return bashScript();
    case "zsh":
      return zshScript();
    case "fish":
      return fishScript();
  }
}

/** Offers nothing for a path, so that bash completes file names. */
function bashScript(): string {
  const optionsFor = (names: OptionName[]) => names.flatMap(spellingsOf).join(" ");
  const cases = COMMAND_NAMES.map((name) => {
    const { operand } = COMMANDS[name];
    const condition = operand === undefined ? "" : "[[ $word == -* ]] && ";
    return `    ${name}) ${condition}offered="${optionsFor(optionsOf(name))}" ;;`;
  });
  return `# bash completion for ${PROGRAM}; save it as
# ~/.local/share/bash-completion/completions/${PROGRAM}
${FUNCTION}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]}
  local command="" offered="" i
  # bash splits --option=value at the sign.
  if [[ $word == = ]]; then
    word=""
  elif [[ $before == = ]]; then
    before=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  COMPREPLY=()
  case $before in
    --config) return ;;
    --completions)
      COMPREPLY=($(compgen -W "${SHELLS.join(" ")}" -- "$word"))
      return
      ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      --config | --completions) [[ \${COMP_WORDS[i+1]} == = ]] && ((i++)); ((i++)) ;;
      -*) ;;
      *) command=\${COMP_WORDS[i]}; break ;;
    esac
  done
  case $command in
    "") offered="${COMMAND_NAMES.join(" ")} ${optionsFor(OPTION_NAMES)}" ;;
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$word"))
}
complete -o default -F ${FUNCTION} ${PROGRAM}
`;
}

function zshScript(): string {
  const commands = COMMAND_NAMES.map((name) => `    '${name}:${COMMANDS[name].summary}'`);
  const cases = COMMAND_NAMES.map((name) =>
    `        ${name}) _arguments ${zshArguments(name).join(" ")} ;;`
  );
  return `#compdef ${PROGRAM}
# zsh completion for ${PROGRAM}; save it as ${FUNCTION} in a directory of $fpath, before compinit
${FUNCTION}() {
  local context state state_descr line
  local -a commands
  typeset -A opt_args
  commands=(
${commands.join("\n")}
  )
  _arguments -C \\
${
    OPTION_NAMES.filter((name) => name !== "chain").map((name) => `    ${zshOption(name)} \\`).join(
      "\n",
    )
  }
    '1: :->command' \\
    '*:: :->operands'
  case $state in
    command) _describe -t commands command commands ;;
    operands)
      case $words[1] in
${cases.join("\n")}
      esac
      ;;
  esac
}
if [[ \${funcstack[1]} == ${FUNCTION} ]]; then
  ${FUNCTION} "$@"
else
  compdef ${FUNCTION} ${PROGRAM}
fi
`;
}

function zshArguments(command: CommandName): string[] {
  const operand = COMMANDS[command].operand === undefined ? [] : ["'1:folder:_files -/'"];
  return [...optionsOf(command).map(zshOption), ...operand];
}

/** Formats an option for `_arguments`; standalone options exclude all others. */
function zshOption(name: OptionName): string {
  const { effect } = OPTIONS[name];
  const [spelling, ...further] = spellingsOf(name);
  const excludes = ["config", "chain"].includes(name) ? "" : "'(- *)'";
  const action = { config: ":file:_files", completions: `:shell:(${SHELLS.join(" ")})` };
  const text = `[${effect}]${name in action ? action[name as keyof typeof action] : ""}`;
  return further.length === 0
    ? `${excludes}'${spelling}${text}'`
    : `${excludes}{${[spelling, ...further].join(",")}}'${text}'`;
}

function fishScript(): string {
  const noCommand = `not __fish_seen_subcommand_from ${COMMAND_NAMES.join(" ")}`;
  const commands = COMMAND_NAMES.map((name) =>
    fishLine(noCommand, `-a ${name} -d '${COMMANDS[name].summary}'`)
  );
  const options = OPTION_NAMES.map((name) => {
    const takers = COMMAND_NAMES.filter((command) => optionsOf(command).includes(name));
    const condition = takers.length === 0 ? noCommand : ofCommands(takers, noCommand, name);
    return fishLine(condition, fishOption(name));
  });
  const operands = COMMAND_NAMES
    .filter((name) => COMMANDS[name].operand !== undefined)
    .map((name) =>
      fishLine(`__fish_seen_subcommand_from ${name}`, "-a '(__fish_complete_directories)'")
    );
  return `# fish completion for ${PROGRAM}; save it as ~/.config/fish/completions/${PROGRAM}.fish
complete -c ${PROGRAM} -f
${[...commands, ...options, ...operands].join("\n")}
`;
}

/** Offers an option after its commands, and a global one before any command too. */
function ofCommands(takers: CommandName[], noCommand: string, name: OptionName): string {
  const seen = `__fish_seen_subcommand_from ${takers.join(" ")}`;
  return name === "chain" ? seen : `${noCommand}; or ${seen}`;
}

function fishLine(condition: string, rest: string): string {
  return `complete -c ${PROGRAM} -n '${condition}' ${rest}`;
}

function fishOption(name: OptionName): string {
  const { short, value, effect } = OPTIONS[name];
  const letter = short === undefined ? "" : ` -s ${short}`;
  const values = value === "PATH"
    ? " -r -F"
    : value === "SHELL"
    ? ` -x -a '${SHELLS.join(" ")}'`
    : "";
  return `-l ${name}${letter}${values} -d '${effect}'`;
}

/**
 * The commands and options of the program, in words: parsing, `--help`, the completions and the man
 * page are all made from this table, so that none of them can say something else. The texts hold
 * no quotes, brackets or backslashes, which shells and troff would read.
 */

export type CommandName = "init" | "serve" | "seal" | "verify";
export type OptionName = "config" | "chain" | "help" | "version" | "completions" | "man";
export type Shell = "bash" | "zsh" | "fish";

export const PROGRAM = "service";
export const DEFAULT_CONFIG_PATH = "service.toml";
export const SHELLS: readonly Shell[] = ["bash", "zsh", "fish"];

export interface OptionEntry {
  /** One letter that means the same. */
  short?: string;
  /** What stands for its value; an option without one takes none. */
  value?: string;
  /** What it does, as half a sentence. */
  effect: string;
}

export interface Example {
  line: string;
  /** What the line does. */
  effect: string;
}

export interface CommandEntry {
  /** What stands for its operand, which may be left out; a command without one takes none. */
  operand?: string;
  /** Options besides the global ones. */
  options: readonly OptionName[];
  /** What it does, as half a sentence. */
  summary: string;
  /** Paragraphs. */
  description: readonly string[];
  examples: readonly Example[];
  /** What the exit status means for this command. */
  exits: Readonly<Record<number, string>>;
}

export const DESCRIPTION = "Durable, append-only event log over HTTP/1.1 on a Unix domain socket.";

/** In the order in which they are listed. */
export const OPTIONS: Readonly<Record<OptionName, OptionEntry>> = {
  config: { value: "PATH", effect: `Configuration file (default: ./${DEFAULT_CONFIG_PATH})` },
  chain: { effect: "Also recompute every payload hash, event hash and the history chain" },
  help: { short: "h", effect: "Print this help; after a command, the help of the command" },
  version: { short: "V", effect: "Print the version" },
  completions: { value: "SHELL", effect: `Print completions for ${SHELLS.join(", ")}` },
  man: { effect: "Print the manual page" },
};

/** Options that do something without a command. */
export const STANDALONE_OPTIONS: readonly OptionName[] = ["help", "version", "completions", "man"];

export const COMMANDS: Readonly<Record<CommandName, CommandEntry>> = {
  init: {
    operand: "DIR",
    options: [],
    summary: "Create or validate a deployment in DIR (default: the current folder)",
    description: [
      "Writes DIR/service.toml, with every key at its default, and an empty log in " +
      "DIR/data/log/. Repeated, it checks that all is there and changes nothing. Refuses a " +
      "directory that holds files it did not create.",
      "Ignores --config.",
    ],
    examples: [{ line: "service init /srv/log", effect: "Create a deployment in /srv/log" }],
    exits: {
      0: "the deployment is there",
      1: "something else is in its place, or the disk failed",
      2: "bad arguments",
    },
  },
  serve: {
    options: [],
    summary: "Take the log writer and serve HTTP on the configured socket",
    description: [
      "Recovers from a crash first, if there was one. Ready when a request is answered. SIGINT " +
      "or SIGTERM ends it once everything accepted has its outcome; a second one ends it at once.",
      "Seals on its own: a tail that has grown large moves into a segment while it serves.",
    ],
    examples: [
      { line: "service --config /srv/log/service.toml serve", effect: "Serve until Ctrl-C" },
      {
        line: "curl --unix-socket /srv/log/data/ground.sock http://localhost/v1/streams",
        effect: "Ask it, in another terminal, for its streams",
      },
    ],
    exits: {
      0: "a signal ended it",
      1: "the lock is held, the log is corrupt, the disk failed, or a second signal",
      2: "bad arguments or an unusable configuration",
      4: "a mode, an anchor or a format that is not supported",
    },
  },
  seal: {
    options: [],
    summary: "Move the append tail into immutable Parquet segments",
    description: [
      "Seals everything, to the last event, which serve leaves in the tail until there is enough " +
      "of it. Needs the log writer, so no serve may run. Names each new segment with its number " +
      "of events and its chain head on standard error. May be interrupted at any time; the next " +
      "seal continues from there.",
    ],
    examples: [
      { line: "service --config /srv/log/service.toml seal", effect: "Seal all that is committed" },
    ],
    exits: {
      0: "all is sealed, or a signal stopped it",
      1: "there was nothing to seal, the lock is held, the log is corrupt, or the disk failed",
      2: "bad arguments or an unusable configuration",
      4: "a mode, an anchor or a format that is not supported",
    },
  },
  verify: {
    options: ["chain"],
    summary: "Check the log without changing it, also beside serve",
    description: [
      "Prints one JSON report on standard output and details of a failure on standard error. " +
      "Checks structure, file hashes, order and batch digests; with --chain also every payload, " +
      "every event and the history chain, which reads and hashes everything.",
    ],
    examples: [
      { line: "service --config /srv/log/service.toml verify", effect: "Check the structure" },
      {
        line: "service --config /srv/log/service.toml verify --chain",
        effect: "Check all content too",
      },
    ],
    exits: {
      0: "every check passed",
      1: "it could not check: no log, no permission, a signal",
      2: "bad arguments or an unusable configuration",
      3: "a check failed; the report says which",
      4: "a mode, an anchor or a format that is not supported",
    },
  },
};

export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[];
export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

/** What the exit status means, whatever the command. */
export const EXITS: Readonly<Record<number, string>> = {
  0: "success",
  1: "operational failure: disk, permissions, a held lock, a corrupt log",
  2: "bad arguments or an unusable configuration; nothing was tried",
  3: "verify found a violation",
  4: "a mode, an anchor or a format that is not supported",
};

/** Variables that the program looks at. */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  NO_COLOR: "if not empty, no colours on a terminal",
  TERM: "if dumb, neither colours nor progress on a terminal",
};

/** Options that a command takes, in the order of the table. */
export function optionsOf(command: CommandName): OptionName[] {
  const takes = (name: OptionName) =>
    name === "help" || (name === "config" && command !== "init") ||
    COMMANDS[command].options.includes(name);
  return OPTION_NAMES.filter(takes);
}

/** All spellings of an option, the letter first: `-h`, `--help`. */
export function spellingsOf(name: OptionName): string[] {
  const { short } = OPTIONS[name];
  return short === undefined ? [`--${name}`] : [`-${short}`, `--${name}`];
}

/** An option as a usage line shows it: `--config <PATH>`. */
export function optionForm(name: OptionName): string {
  const { value } = OPTIONS[name];
  return value === undefined ? `--${name}` : `--${name} <${value}>`;
}

/** An option as a list of options shows it: `-h, --help`. */
export function optionTerm(name: OptionName): string {
  const { short } = OPTIONS[name];
  return (short === undefined ? "" : `-${short}, `) + optionForm(name);
}

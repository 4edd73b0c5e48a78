/**
 * The commands and options, used by argument parsing, `--help`, completions and the man page.
 * Strings must not contain quotes, brackets or backslashes, which shells and troff interpret.
 */
import { basename } from "node:path";
import process from "node:process";

export type CommandName = "init" | "serve" | "seal" | "verify" | "backup";
export type OptionName = "config" | "chain" | "keep" | "help" | "version" | "completions" | "man";
export type Shell = "bash" | "zsh" | "fish";

/** The name by which the program was invoked. Debian has a different program named `service`. */
export const PROGRAM: string = programName(process.argv);
export const DEFAULT_CONFIG_PATH = "service.toml";
export const SHELLS: readonly Shell[] = ["bash", "zsh", "fish"];

/** @param argv starts with an executable, or with a runtime and a script (or a link to one). */
export function programName(argv: readonly string[]): string {
  const names = argv.slice(0, 2).map((path) => basename(path)).reverse();
  return names.find((name) => /^(?!(deno|node|bun)$)\w[\w-]*$/.test(name)) ?? "service";
}

export interface OptionEntry {
  type: "string" | "boolean";
  /** Short form, one letter. */
  short?: string;
  /** Placeholder for the value of a string. */
  value?: string;
  /** Description, without a final period. */
  effect: string;
}

export interface CommandEntry {
  /** Placeholder for the optional operand, if the command takes one. */
  operand?: string;
  /** In the order in which help lists them. */
  options: readonly OptionName[];
  /** Arguments of an example, without the command's name. */
  example: string;
  /** What it does in a line, without a final period. */
  summary: string;
  /** What else its user must know. */
  description: string;
}

export const DESCRIPTION = "Durable, append-only event log over HTTP/1.1 on a Unix domain socket.";

/** In the order in which help lists them; also the options of `parseArgs()`. */
export const OPTIONS: Readonly<Record<OptionName, OptionEntry>> = {
  config: {
    type: "string",
    value: "PATH",
    effect: `Configuration file (default: ./${DEFAULT_CONFIG_PATH})`,
  },
  chain: {
    type: "boolean",
    effect: "With verify, recompute all payload hashes, event hashes and the chain",
  },
  keep: {
    type: "string",
    value: "NUMBER",
    effect: "With backup, remove older copies until this many are left",
  },
  help: { type: "boolean", short: "h", effect: "Print this help, or the help for a command" },
  version: { type: "boolean", short: "V", effect: "Print the version" },
  completions: {
    type: "string",
    value: "SHELL",
    effect: `Print completions for ${SHELLS.join(", ")}`,
  },
  man: { type: "boolean", effect: "Print the manual page" },
};

const ON_LOG = `--config /srv/log/${DEFAULT_CONFIG_PATH}`;

export const COMMANDS: Readonly<Record<CommandName, CommandEntry>> = {
  init: {
    operand: "DIR",
    options: ["help"],
    example: "/srv/log",
    summary: "Create or validate a deployment in DIR (default: the current directory)",
    description:
      "Writes DIR/service.toml with all keys at their defaults, and creates an empty log in " +
      "DIR/data/log/. If the deployment exists, validates it and changes nothing. Refuses an " +
      "edited DIR/service.toml and unexpected files in DIR/data/, and ignores other files in DIR.",
  },
  serve: {
    options: ["config", "help"],
    example: ON_LOG,
    summary: "Serve HTTP on the configured socket as the writer of the log, until a signal",
    description:
      "Recovers from a crash if necessary, then accepts requests. SIGINT, SIGTERM or SIGHUP " +
      "shuts it down after all accepted requests are done. A second signal ends it immediately. " +
      "While it runs, it seals a large tail in the background.",
  },
  seal: {
    options: ["config", "help"],
    example: ON_LOG,
    summary: "Move the append tail into immutable Parquet segments, while serve is stopped",
    description:
      "Seals all events, including a small tail that serve would not seal. Reports each new " +
      "segment with its number of events and its chain head on standard error. Can be " +
      "interrupted at any time; the next seal continues.",
  },
  verify: {
    options: ["config", "chain", "help"],
    example: `${ON_LOG} --chain`,
    summary: "Verify the log without changing it, even while serve runs",
    description:
      "Prints a JSON report on standard output and details of a failure on standard error. " +
      "Checks structure, file hashes, order and batch digests. With --chain, also reads and " +
      "hashes every payload, every event and the history chain.",
  },
  backup: {
    operand: "DIR",
    options: ["config", "keep", "help"],
    example: `/backup/log ${ON_LOG} --keep 7`,
    summary: "Add a verified copy of the deployment to DIR, even while serve runs",
    description:
      "The copy is a deployment in a new directory in DIR, to which DIR/latest links. It shares " +
      "segments with the last copy as hard links. Prints its path, last event and chain head as " +
      "a line of JSON on standard output. Can be interrupted at any time.",
  },
};

export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[];
export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

/** Meanings of the exit statuses. */
export const EXITS: Readonly<Record<number, string>> = {
  0: "success, also of a clean shutdown by a signal",
  1: "operational failure: disk, permissions, a held lock, a corrupt log",
  2: "bad arguments, or an unusable configuration, such as an unknown mode; nothing was changed",
  3: "verify found a violation",
  4: "an unsupported security mode (governed, locked), integrity anchor (signed, mirrored, " +
    "witnessed) or log format",
};

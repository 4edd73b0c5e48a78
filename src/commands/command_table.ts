/**
 * The commands and options, used by argument parsing, `--help`, completions and the man page.
 * Strings must not contain quotes, brackets or backslashes, which shells and troff interpret.
 */
import { basename } from "node:path";
import process from "node:process";

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
  /** Placeholder for the operand, if the command takes one. */
  operand?: string;
  /** In the order in which help lists them. */
  options: readonly OptionName[];
  /** An option or operand that must be given. */
  required?: OptionName | "DIR";
  /** Exit statuses besides 0, 1 and 2. */
  exits?: readonly number[];
  /** Arguments of an example, without the command's name. */
  example: string;
  /** What it does in a line, without a final period. */
  summary: string;
  /** What else its user must know. */
  description: string;
}

export const DESCRIPTION = "Durable, append-only event log over HTTP/1.1 on a Unix domain socket.";

/** In the order in which help lists them. */
const OPTION_TABLE = {
  config: {
    type: "string",
    value: "PATH",
    effect: `Configuration file (default: ./${DEFAULT_CONFIG_PATH})`,
  },
  chain: {
    type: "boolean",
    effect: "With verify, recompute all payload hashes, event hashes and the chain",
  },
  source: { type: "string", value: "NAME", effect: "Source of the events" },
  stream: {
    type: "string",
    value: "NAME",
    effect: "Only events of this stream; with append, the stream of events that name none",
  },
  "record-key": { type: "string", value: "KEY", effect: "Only events with this record key" },
  kind: { type: "string", value: "KIND", effect: "Only events of this kind" },
  "batch-id": {
    type: "string",
    value: "PREFIX",
    effect: "Batch ids PREFIX/1, PREFIX/2, and so on: the same input again is a duplicate",
  },
  after: { type: "string", value: "POSITION", effect: "Start after the event with this id" },
  since: {
    type: "string",
    value: "TIME",
    effect: "Start at a commit time such as 2026-01-31T12:00:00Z, or a period ago such as 10m",
  },
  last: { type: "string", value: "COUNT", effect: "Start with the last COUNT events that match" },
  follow: { type: "boolean", effect: "Then print new events as they are committed" },
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
} satisfies Record<string, OptionEntry>;

export type OptionName = keyof typeof OPTION_TABLE;
/** Also the options of `parseArgs()`. */
export const OPTIONS: Readonly<Record<OptionName, OptionEntry>> = OPTION_TABLE;

const ON_LOG = `--config /srv/log/${DEFAULT_CONFIG_PATH}`;

const COMMAND_TABLE = {
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
    exits: [4],
    example: ON_LOG,
    summary: "Serve HTTP on the configured socket as the writer of the log, until a signal",
    description:
      "Recovers from a crash if necessary, then accepts requests. SIGINT, SIGTERM or SIGHUP " +
      "shuts it down after all accepted requests are done. A second signal ends it immediately. " +
      "While it runs, it seals a large tail in the background.",
  },
  seal: {
    options: ["config", "help"],
    exits: [4],
    example: ON_LOG,
    summary: "Move the append tail into immutable Parquet segments, while serve is stopped",
    description:
      "Seals all events, including a small tail that serve would not seal. Reports each new " +
      "segment with its number of events and its chain head on standard error. Can be " +
      "interrupted at any time; the next seal continues.",
  },
  verify: {
    options: ["config", "chain", "help"],
    exits: [3, 4],
    example: `${ON_LOG} --chain`,
    summary: "Verify the log without changing it, even while serve runs",
    description:
      "Prints a JSON report on standard output and details of a failure on standard error. " +
      "Checks structure, file hashes, order and batch digests. With --chain, also reads and " +
      "hashes every payload, every event and the history chain.",
  },
  append: {
    options: ["config", "source", "stream", "batch-id", "help"],
    required: "source",
    example: `${ON_LOG} --source shop`,
    summary: "Append events from standard input, one JSON object a line, while serve runs",
    description:
      "Lines have the members stream, record_key, kind, payload and, optionally, occurred_at. " +
      "Sends them in batches of up to 1,000 lines or 4 MiB, at the latest after 200 ms, and " +
      "repeats requests safely. Prints a receipt for each batch. If a line is invalid, nothing " +
      "of its batch is written. With --batch-id, batches end by lines and size alone.",
  },
  tail: {
    options: [
      ...(["config", "source", "stream", "record-key", "kind", "after", "since", "last"] as const),
      ...(["follow", "help"] as const),
    ],
    example: `${ON_LOG} --last 10 --follow`,
    summary: "Print events, one a line, while serve runs",
    description:
      "Prints events exactly as stored, in order, up to the last one when it started. With " +
      "--follow, goes on with new events, also after the service has restarted. " +
      "--last 0 --follow prints only these.",
  },
  streams: {
    options: ["config", "source", "help"],
    example: ON_LOG,
    summary: "Print a summary of each stream, one a line, while serve runs",
    description: "A summary has the source, the stream, its last event and its number of events.",
  },
  backup: {
    operand: "DIR",
    required: "DIR",
    options: ["config", "keep", "help"],
    exits: [4],
    example: `/backup/log ${ON_LOG} --keep 7`,
    summary: "Add a verified copy of the deployment to DIR, even while serve runs",
    description:
      "The copy is a deployment in a new directory in DIR, to which DIR/latest links. It shares " +
      "segments with the last copy as hard links. Prints its path, last event and chain head as " +
      "a line of JSON on standard output. Can be interrupted at any time.",
  },
} satisfies Record<string, CommandEntry>;

export type CommandName = keyof typeof COMMAND_TABLE;
export const COMMANDS: Readonly<Record<CommandName, CommandEntry>> = COMMAND_TABLE;

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

/** The mirror's command line. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import { usageError } from "../src/commands/exit.ts";

/** The output of `--help`. */
export const USAGE =
  `usage: mirror push --socket SOCKET [--nats URL] [--stream NAME] [--token-file FILE]
                   [--after EVENT_ID] [--once]
       mirror restore [--nats URL] [--stream NAME] [--segments URL] [--head HEX] DIR
       mirror standby [--nats URL] [--stream NAME] [--segments URL] [--once] DIR
       mirror segments --to URL DIR

push      continuously copies the log of a running service to a NATS JetStream stream
restore   builds the log of the deployment DIR from the stream
standby   does the same, and then keeps following the stream
segments  copies the sealed segments of the deployment DIR to a directory or S3-compatible store

  --socket SOCKET   Unix socket of the service
  --nats URL        nats://host[:port], or a comma-separated list (default: NATS_URL if set, which
                    may contain user:password@, otherwise nats://127.0.0.1:4222)
  --stream NAME     NATS stream; push creates it if it does not exist (default: ground)
  --token-file FILE file with the bearer token, if the service requires one
  --after EVENT_ID  the last event pushed to a stream whose messages have all expired
  --once            exit with status 0 after catching up, or 1 after 60 s without progress
  --head HEX        fail unless the restored log reaches this chain head
  --segments URL    first restore the segments stored at URL
  --to URL          a directory, or s3://BUCKET[/PREFIX] (endpoint: AWS_ENDPOINT_URL)
  --version         print the version
`;

/** Accepted stream names: a subset of what NATS allows. */
const NATS_NAME = /^[A-Za-z0-9_-]{1,128}$/;
const CHAIN_HEAD = /^[0-9a-f]{64}$/;

interface StreamArguments {
  servers: string;
  stream: string;
}

/** A parsed command line. */
export type Invocation =
  | { command: "help" | "version" }
  | {
    command: "push";
    socket: string;
    token?: string;
    after: string | undefined;
    once: boolean;
  } & StreamArguments
  | {
    command: "restore" | "standby";
    dir: string;
    head: string | undefined;
    segments: string | undefined;
    once: boolean;
  } & StreamArguments
  | { command: "segments"; dir: string; to: string };

const OPTIONS = {
  socket: { type: "string" },
  nats: { type: "string" },
  stream: { type: "string" },
  "token-file": { type: "string" },
  after: { type: "string" },
  once: { type: "boolean" },
  head: { type: "string" },
  segments: { type: "string" },
  to: { type: "string" },
  help: { type: "boolean" },
  version: { type: "boolean" },
} as const;

type Option = keyof typeof OPTIONS;

const OPTIONS_OF: Record<Exclude<Invocation["command"], "help" | "version">, readonly Option[]> = {
  push: ["socket", "nats", "stream", "token-file", "after", "once"],
  restore: ["nats", "stream", "segments", "head"],
  standby: ["nats", "stream", "segments", "once"],
  segments: ["to"],
};

/** @throws {CommandError} with exit status 2 if the arguments are invalid. */
export function parseArguments(args: string[]): Invocation {
  const { values, positionals } = split(args);
  const [command, dir, ...more] = positionals;
  if (values.help === true) return { command: "help" };
  if (values.version === true) return { command: "version" };
  if (command === undefined || !isCommand(command)) {
    throw usageError(`${command ?? "no command"}: expected push, restore, standby or segments`);
  }
  for (const name of Object.keys(values)) {
    if (OPTIONS_OF[command].includes(name as Option)) continue;
    throw usageError(`${command} does not accept --${name}`);
  }
  if (more.length > 0) throw usageError(`${more[0]}: ${command} takes one directory`);
  if (command === "push") {
    if (dir !== undefined) throw usageError(`${dir}: push does not take a directory`);
    const { socket, after, once = false } = values;
    const token = tokenIn(values["token-file"]);
    if (socket === undefined) throw usageError("push requires --socket");
    return { command, socket, ...(token && { token }), after, once, ...streamOf(values) };
  }
  if (dir === undefined) throw usageError(`${command} requires a deployment directory`);
  if (command === "segments") {
    if (values.to === undefined) throw usageError("segments requires --to");
    return { command, dir, to: values.to };
  }
  const { head, segments, once = command === "restore" } = values;
  if (head !== undefined && !CHAIN_HEAD.test(head)) {
    throw usageError(`${head}: a chain head must be 64 lowercase hex digits`);
  }
  return { command, dir, head, segments, once, ...streamOf(values) };
}

function split(args: string[]) {
  try {
    return parseArgs({ args, allowPositionals: true, options: OPTIONS });
  } catch (error) {
    throw usageError((error as Error).message);
  }
}

function isCommand(name: string): name is keyof typeof OPTIONS_OF {
  return Object.hasOwn(OPTIONS_OF, name);
}

function tokenIn(path: string | undefined): string | undefined {
  try {
    return path && readFileSync(path, "utf8").trimEnd();
  } catch (error) {
    throw usageError(`--token-file: ${(error as Error).message}`);
  }
}

function streamOf({ nats, stream = "ground" }: { nats?: string; stream?: string }) {
  if (!NATS_NAME.test(stream)) throw usageError(`${stream} is not a valid NATS name`);
  const servers = nats ?? process.env.NATS_URL ?? "nats://127.0.0.1:4222";
  if (!servers.split(",").every((url) => URL.canParse(url))) {
    throw usageError("--nats must be a comma-separated list of URLs");
  }
  if (nats?.includes("@")) {
    throw usageError("other users can see the password in --nats: set NATS_URL instead");
  }
  return { servers, stream };
}

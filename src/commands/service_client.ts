/**
 * Runs a command as a client of the configured service. Ctrl-C and a closed standard output end it
 * quietly, with status 0.
 */
import { Buffer } from "node:buffer";
import { write } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { ConnectionError, EventLogError } from "../client/errors.ts";
import { EventLogClient } from "../client/event_log_client.ts";
import { systemCodeOf } from "../client/retry.ts";
import type { EventLogClientOptions } from "../client/transport.ts";
import { unixFetch } from "../client/unix_fetch.ts";
import { errorCode } from "../log/storage/storage.ts";
import { PROGRAM } from "./command_table.ts";
import type { Config } from "./config.ts";
import { operationalError, usageError } from "./exit.ts";
import type { Terminal } from "./terminal.ts";

/** How long the first request waits for a socket, and for a response before that is reported. */
const SERVICE_WAIT_MS = 500;
const SILENCE_MS = 1_000;
/** How long a later request waits for a service that restarts. */
const RESTART_WAIT_MS = 60_000;

const BAD_REQUEST = 400;
const STDOUT = 1;
const FULL_PIPE_WAIT_MS = 1;
const writeFile = promisify(write);

/**
 * Runs `use` once the service answers, with a client that repeats reads as long as it takes, and
 * the last event in the log, null if it is empty.
 * @throws {CommandError} with exit status 1 if the service does not answer.
 */
export async function runAsClient(
  config: Config,
  { report, stop }: Terminal,
  use: (client: EventLogClient, frontier: string | null) => Promise<void>,
): Promise<void> {
  try {
    const frontier = await firstAnswer(config, stop, report);
    const options = { attemptsMax: Infinity, socketWaitMs: RESTART_WAIT_MS };
    await use(clientOf(config, options), frontier);
  } catch (error) {
    if (error === stop.reason || errorCode(error) === "EPIPE") return;
    // A value that the service refuses is a bad argument.
    const isRefused = error instanceof EventLogError && error.status === BAD_REQUEST;
    throw isRefused ? usageError(error.message) : error;
  }
}

/** Returns a client of the configured service. */
function clientOf({ socketPath, token }: Config, options: EventLogClientOptions): EventLogClient {
  return new EventLogClient(unixFetch(socketPath), { token: token || undefined, ...options });
}

/** Asks the service for the last event in the log; null if it is empty. */
export async function readFrontier(
  config: Config,
  options: EventLogClientOptions,
  signal?: AbortSignal,
): Promise<string | null> {
  // A page after all events tells the frontier.
  const pages = clientOf(config, options).replayPages({ since: Infinity, limit: 1, signal });
  const { value } = await pages.next();
  return value!.snapshotThroughEventId;
}

/** Returns the frontier. */
async function firstAnswer(
  config: Config,
  signal: AbortSignal,
  report: (line: string) => void,
): Promise<string | null> {
  const { socketPath, path } = config;
  const start = `start one with: ${PROGRAM} --config ${path} serve`;
  const tellSilence = () => report(`${socketPath}: no answer yet; if no service works, ${start}`);
  const timer = globalThis.setTimeout(tellSilence, SILENCE_MS);
  try {
    const options = { attemptsMax: 1, socketWaitMs: SERVICE_WAIT_MS };
    return await readFrontier(config, options, signal);
  } catch (error) {
    // A service to which this user has no access need not be started.
    if (!(error instanceof ConnectionError) || systemCodeOf(error) === "EACCES") throw error;
    // The message around the cause names the request, too.
    const { message } = error.cause instanceof Error ? error.cause : error;
    throw operationalError(`no service answers: ${message}; ${start}`, error);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Writes to standard output, on a thread, since a pipe that nobody reads would keep signals from
 * being handled.
 */
export async function print(text: string): Promise<void> {
  let bytes = Buffer.from(text);
  while (bytes.length > 0) {
    try {
      const { bytesWritten } = await writeFile(STDOUT, bytes, 0, bytes.length, null);
      bytes = bytes.subarray(bytesWritten);
    } catch (error) {
      // Whoever started the program has made the pipe non-blocking, and it is full.
      if (errorCode(error) !== "EAGAIN") throw error;
      await setTimeout(FULL_PIPE_WAIT_MS);
    }
  }
}

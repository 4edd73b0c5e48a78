/**
 * A consumer: prints the log, one line per event, and resumes where it stopped.
 *
 *     node examples/tail_log.ts --socket demo/data/ground.sock --cursor /tmp/cursor --once
 *     deno task example:tail-log demo/data/ground.sock --cursor /tmp/cursor
 *
 * The cursor file with the position is written after the lines are printed: a crash in between
 * repeats lines, but never skips one.
 */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { ConnectionError, EventLogClient, type ReplayOptions, unixFetch } from "../mod.ts";
import { readCursor, writeCursor } from "./support/cursor_file.ts";
import { formatEvent, formatEventJson } from "./support/event_line.ts";
import { runExample, UsageError } from "./support/run_example.ts";
import { withoutUndefined } from "./support/without_undefined.ts";

const USAGE = `usage: tail_log --socket SOCKET [--cursor FILE] [--once] [FILTER...]
       tail_log SOCKET

  --socket SOCKET      socket of the service
  --cursor FILE        file with the position, to resume from
  --once               stop at the end of the log instead of waiting for more
  --interval SECONDS   polling interval (default: 1)
  --limit N            most events per request
  --json               print whole events as JSON
  --token TOKEN        bearer token, if the service requires one

filters: --source NAME, --stream NAME, --record-key KEY, --kind KIND`;

/** The next poll retries. */
const ATTEMPTS_MAX = 1;

interface Options {
  client: EventLogClient;
  cursorPath: string | undefined;
  /** Null to stop at the end of the log. */
  intervalMs: number | null;
  format: typeof formatEvent;
  filter: ReplayOptions;
}

function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      socket: { type: "string" },
      cursor: { type: "string" },
      once: { type: "boolean", default: false },
      interval: { type: "string", default: "1" },
      limit: { type: "string" },
      json: { type: "boolean", default: false },
      token: { type: "string" },
      source: { type: "string" },
      stream: { type: "string" },
      "record-key": { type: "string" },
      kind: { type: "string" },
    },
  });
  const rest = [...positionals];
  const socket = values.socket ?? rest.shift();
  if (socket === undefined || rest.length > 0) throw new UsageError("a socket is required");
  const intervalSeconds = Number(values.interval);
  if (!(intervalSeconds > 0 && intervalSeconds <= 86_400)) {
    throw new UsageError(`--interval must be a number of seconds, got ${values.interval}`);
  }
  const { token, source, stream, "record-key": recordKey, kind } = values;
  const limit = values.limit === undefined ? undefined : Number(values.limit);
  return {
    client: new EventLogClient(
      unixFetch(socket),
      withoutUndefined({ token, attemptsMax: ATTEMPTS_MAX }),
    ),
    cursorPath: values.cursor,
    intervalMs: values.once ? null : intervalSeconds * 1000,
    format: values.json ? formatEventJson : formatEvent,
    filter: withoutUndefined({ source, stream, recordKey, kind, limit }),
  };
}

/** Resolves once the string has been written to the operating system. */
function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => error ? reject(error) : resolve());
  });
}

async function tailLog(options: Options): Promise<void> {
  const { client, cursorPath, intervalMs, format, filter } = options;
  let position = cursorPath === undefined ? null : await readCursor(cursorPath);

  async function printToEnd(): Promise<void> {
    for await (const page of client.replayPages({ ...filter, after: position })) {
      await print(page.events.map((event) => format(event) + "\n").join(""));
      if (page.nextAfter === position) continue;
      position = page.nextAfter;
      if (cursorPath !== undefined && position !== null) await writeCursor(cursorPath, position);
    }
  }

  if (intervalMs === null) return await printToEnd();
  while (true) {
    try {
      await printToEnd();
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      process.stderr.write(`${error.message}; retrying\n`);
    }
    await delay(intervalMs);
  }
}

await runExample(USAGE, () => tailLog(parseOptions(process.argv.slice(2))));

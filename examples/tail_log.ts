/**
 * A consumer: prints the log, one line per event, and resumes where it stopped.
 *
 *     node examples/tail_log.ts --socket demo/data/ground.sock --cursor /tmp/cursor --once
 *     deno task example:tail_log demo/data/ground.sock --cursor /tmp/cursor
 *     node examples/tail_log.ts demo/data/ground.sock --once --last 10
 *     node examples/tail_log.ts demo/data/ground.sock --once --since "yesterday 14:00"
 *     node examples/tail_log.ts demo/data/ground.sock --once --record-key 1001 --json
 *
 * The position is written to the cursor file after the lines are printed, so a crash in between
 * repeats lines but never skips any.
 */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type CommittedEvent, EventLogClient, type ReplayOptions, unixFetch } from "../mod.ts";
import { checkedPath } from "./support/checked_path.ts";
import { readCursor, writeCursor } from "./support/cursor_file.ts";
import { formatEvent, formatEventJson } from "./support/event_line.ts";
import { frontierOf } from "./support/frontier.ts";
import { lastEvents } from "./support/last_events.ts";
import { refuseRest, runExample, UsageError } from "./support/run_example.ts";
import { readToken } from "./support/token_file.ts";
import { parseSince } from "./support/since.ts";
import { parseWait, reportRetry, WAIT_OPTION } from "./support/socket_wait.ts";
import { withoutUndefined } from "./support/without_undefined.ts";

const USAGE = `usage: tail_log --socket SOCKET [--cursor FILE | --last N | --since TIME] [FILTER...]
       tail_log SOCKET

  --socket SOCKET      socket of the service
  --cursor FILE        file that stores the position to resume from
  --last N             start with the last N matching events
  --since TIME         start with the events committed since TIME: 90m, 2d (ago), 14:00,
                       yesterday 14:00, 2026-01-31 14:00, 2026-01-31T14:00:00Z
  --once               stop at the end of the log instead of waiting for more
  --interval SECONDS   polling interval (default: 1)
  --limit N            maximum events per request
  --json               print complete events as JSON
  --wait SECONDS       wait this long for the service to start (default: 60)
  --token-file FILE    file with the bearer token, if the service requires one

filters: --source NAME, --stream NAME, --record-key KEY, --kind KIND`;

interface Options {
  client: EventLogClient;
  cursorPath: string | undefined;
  /** Number of last events to print first; null to start at a position. */
  lastCount: number | null;
  /** Polling interval; null to stop at the end of the log. */
  intervalMs: number | null;
  format: typeof formatEvent;
  /** What to print, and since when. */
  filter: ReplayOptions;
}

function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      socket: { type: "string" },
      cursor: { type: "string" },
      last: { type: "string" },
      since: { type: "string" },
      once: { type: "boolean", default: false },
      interval: { type: "string", default: "1" },
      limit: { type: "string" },
      json: { type: "boolean", default: false },
      wait: WAIT_OPTION,
      "token-file": { type: "string" },
      source: { type: "string" },
      stream: { type: "string" },
      "record-key": { type: "string" },
      kind: { type: "string" },
    },
  });
  const rest = [...positionals];
  const socket = values.socket ?? rest.shift();
  if (socket === undefined) throw new UsageError("a socket is required");
  refuseRest(rest);
  const intervalSeconds = Number(values.interval);
  if (!(intervalSeconds > 0 && intervalSeconds <= 86_400)) {
    throw new UsageError(`--interval must be a number of seconds, got ${values.interval}`);
  }
  if (
    [values.cursor, values.last, values.since].filter((start) => start !== undefined).length > 1
  ) {
    throw new UsageError("use only one of --cursor, --last and --since");
  }
  const lastCount = values.last === undefined ? null : Number(values.last);
  if (lastCount !== null && !(Number.isInteger(lastCount) && lastCount > 0)) {
    throw new UsageError(`--last must be a positive integer, got ${values.last}`);
  }
  const since = values.since === undefined ? undefined : parseSince(values.since, Date.now());
  if (since === null) throw new UsageError(`--since must be a time, got ${values.since}`);
  const token = readToken(values["token-file"]);
  const { source, stream, "record-key": recordKey, kind } = values;
  const limit = values.limit === undefined ? undefined : Number(values.limit);
  return {
    client: new EventLogClient(
      unixFetch(socket),
      withoutUndefined({
        token,
        // Without --once, retry for as long as the service is down.
        attemptsMax: values.once ? 1 : Infinity,
        socketWaitMs: parseWait(values.wait),
        onRetry: reportRetry,
      }),
    ),
    cursorPath: values.cursor && checkedPath(values.cursor),
    lastCount,
    intervalMs: values.once ? null : intervalSeconds * 1000,
    format: values.json ? formatEventJson : formatEvent,
    filter: withoutUndefined({ since, source, stream, recordKey, kind, limit }),
  };
}

/** Resolves once the lines have been written to the operating system. */
function printEvents(events: CommittedEvent[], format: typeof formatEvent): Promise<void> {
  const text = events.map((event) => format(event) + "\n").join("");
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => error ? reject(error) : resolve());
  });
}

/** Prints the last events if requested. @returns the position to continue from. */
async function start({ client, filter, format, ...options }: Options): Promise<string | null> {
  const { cursorPath, lastCount } = options;
  if (cursorPath !== undefined) return await readCursor(cursorPath);
  if (lastCount === null) return null;
  const frontier = await frontierOf(client);
  if (frontier === null) return null;
  async function* readSince(since: number) {
    for await (const { events } of client.replayPages({ ...filter, since })) yield events;
  }
  const last = await lastEvents(readSince, frontier, lastCount);
  await printEvents(last, format);
  return last.at(-1)?.event_id ?? frontier;
}

async function tailLog(options: Options): Promise<void> {
  const { client, cursorPath, intervalMs, format, filter } = options;
  let position = await start(options);

  async function printToEnd(): Promise<void> {
    for await (const page of client.replayPages({ ...filter, after: position })) {
      await printEvents(page.events, format);
      if (page.nextAfter === position) continue;
      position = page.nextAfter;
      if (cursorPath !== undefined && position !== null) await writeCursor(cursorPath, position);
    }
  }

  if (intervalMs === null) return await printToEnd();
  while (true) {
    await printToEnd();
    await delay(intervalMs);
  }
}

await runExample(USAGE, () => tailLog(parseOptions(process.argv.slice(2))));

/**
 * A consumer: maintains the current state of every record in a SQLite database.
 *
 *     node examples/sqlite_view.ts --socket demo/data/ground.sock --database view.db
 *     deno task example:sqlite_view demo/data/ground.sock view.db
 *     sqlite3 view.db "SELECT payload ->> 'subject' FROM records WHERE stream = 'commits'"
 *
 * The program may be killed and restarted at any time. The table always equals a view built from
 * scratch up to the same position.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import {
  EventLogClient,
  type Reconnect,
  type ReplayOptions,
  type ReplayPage,
  unixFetch,
} from "../mod.ts";
import { checkedPath } from "./support/checked_path.ts";
import { RecordView } from "./support/record_view.ts";
import { refuseRest, runExample, UsageError } from "./support/run_example.ts";
import { parseWait, WAIT_OPTION, WAIT_USAGE } from "./support/socket_wait.ts";
import { readToken } from "./support/token_file.ts";

const USAGE = `usage: sqlite_view --socket SOCKET --database FILE [OPTION...]
       sqlite_view SOCKET FILE

  --socket SOCKET  socket of the service
  --database FILE  SQLite database, created if missing
  --once           stop at the end of the log instead of waiting for more
  --limit N        maximum events per transaction
  ${WAIT_USAGE}
  --token-file FILE  file with the bearer token, if the service requires one`;

interface Options {
  client: EventLogClient;
  databasePath: string;
  once: boolean;
  /** Maximum number of events per transaction; null to use the service's page size. */
  limit: number | null;
}

function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      socket: { type: "string" },
      database: { type: "string" },
      once: { type: "boolean", default: false },
      limit: { type: "string" },
      wait: WAIT_OPTION,
      "token-file": { type: "string" },
    },
  });
  const operands = [...positionals];
  const socket = values.socket ?? operands.shift();
  const databasePath = values.database ?? operands.shift();
  if (socket === undefined || databasePath === undefined) {
    throw new UsageError("a socket and a database are required");
  }
  refuseRest(operands);
  const token = readToken(values["token-file"]);
  const { once, limit } = values;
  return {
    client: new EventLogClient(unixFetch(socket), {
      ...(token === undefined ? {} : { token }),
      // When following, retry for as long as the service is down.
      ...(once ? {} : { attemptsMax: Infinity }),
      socketWaitMs: parseWait(values.wait),
      onRetry: report,
    }),
    databasePath: checkedPath(databasePath),
    once,
    limit: limit === undefined ? null : Number(limit),
  };
}

/** Returns the options that select the events after the view's position. */
function rest({ limit }: Options, view: RecordView): ReplayOptions {
  return { after: view.position, ...(limit === null ? {} : { limit }) };
}

/** Updates the view through the current end of the log. */
async function catchUp(options: Options, view: RecordView): Promise<void> {
  for await (const page of options.client.replayPages(rest(options, view))) takeIn(page, view);
}

/** Keeps the view up to date until the service ends the follow permanently. */
async function follow(options: Options, view: RecordView): Promise<void> {
  const records = options.client.followRecords({ ...rest(options, view), onReconnect: report });
  for await (const record of records) {
    if (record.type === "events") takeIn(record, view);
    if (record.type === "end") throw new Error(`${record.reason}: ${record.detail}`);
  }
}

function takeIn({ events, nextAfter }: ReplayPage, view: RecordView): void {
  if (nextAfter === view.position) return;
  view.apply(events, nextAfter);
  process.stdout.write(`${events.length} events, through ${nextAfter}\n`);
}

function report({ reason, pauseMs }: Reconnect): void {
  const why = reason instanceof Error ? reason.message : reason.reason;
  process.stderr.write(`${why}; reconnecting in ${Math.round(pauseMs)} ms\n`);
}

async function keepView(options: Options): Promise<void> {
  const view = new RecordView(options.databasePath);
  try {
    await catchUp(options, view);
    if (!options.once) await follow(options, view);
  } finally {
    view.close();
  }
}

await runExample(USAGE, () => keepView(parseOptions(process.argv.slice(2))));

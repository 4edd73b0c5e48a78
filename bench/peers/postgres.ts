/**
 * The PostgreSQL side of each benchmark row. The table has a sequence number as its primary key,
 * and the payload as `json`, the cheapest validated type. Inserting events from JSON does the same
 * work as the service. COPY, with events already split into columns, is the fastest variant.
 */
import { Buffer } from "node:buffer";
import { setTimeout as delay } from "node:timers/promises";
import { BatchRequest, BENCH_SOURCE } from "../support/requests.ts";
import type { Connection } from "./connection.ts";
import { Arrivals, measureArrivals } from "./delivery.ts";
import { type BenchEvent, eventsOf } from "./events.ts";
import { type LoadClient, measureLoad } from "./load.ts";
import type { Measurement } from "./measurement.ts";
import { runPgbench } from "./native_tools.ts";
import {
  copyMessages,
  executeMessages,
  int64,
  parseMessage,
  queryMessage,
  syncMessage,
  terminateMessage,
  timestamp,
} from "./pg_messages.ts";
import type { PgReply } from "./pg_replies.ts";
import {
  openPostgres,
  type Postgres,
  type PostgresCluster,
  runSql,
  withPostgres,
} from "./postgres_server.ts";
import {
  type BenchContext,
  FILL_BATCH_EVENTS,
  INGEST_ROWS,
  type IngestRow,
  PAGE_EVENTS,
  type Subject,
  type Variant,
} from "./rows.ts";

const COLUMNS = "source, stream, record_key, kind, occurred_at, payload";
/** Index of the only column in `COLUMNS` that is not text. */
const OCCURRED_AT = COLUMNS.split(", ").indexOf("occurred_at");
const ALL_COLUMNS = `id, ${COLUMNS}, observed_at`;
const CHANNEL = "events";
const SESSION_POLL_MS = 5;

const STATEMENTS: Record<string, string> = {
  insert: `INSERT INTO events (${COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)`,
  insert_json: `INSERT INTO events (${COLUMNS}) ` +
    "SELECT $1, stream, record_key, kind, occurred_at, payload FROM json_to_recordset($2::json) " +
    "AS e(stream text, record_key text, kind text, occurred_at timestamptz, payload json)",
  page: `SELECT ${ALL_COLUMNS} FROM events WHERE id > $1 ORDER BY id LIMIT ${PAGE_EVENTS}`,
  key: `SELECT ${ALL_COLUMNS} FROM events WHERE record_key = $1 ORDER BY id`,
  notify: `NOTIFY ${CHANNEL}`,
  sessions: "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
  per_1000_syncs: "SELECT 1000 * count(*) / greatest((SELECT wal_sync FROM pg_stat_wal), 1) " +
    "FROM events",
};

type Measure = (postgres: Postgres) => Promise<Measurement>;

export function postgresSubject(cluster: PostgresCluster, context: BenchContext): Subject {
  /** A variant that is compared only as `best peer`, since it skips work that the service does. */
  const shortcut = (name: string, measure: Measure): Variant => ({
    name,
    isSameWork: false,
    measure: () => withPostgres(cluster, measure),
  });
  const sameWork = (name: string, measure: Measure): Variant => ({
    ...shortcut(name, measure),
    isSameWork: true,
  });
  const ingest = (row: IngestRow, request: Buffer): Measure => (postgres) =>
    measureIngest(postgres, row, request, context);
  const singleVariants = (row: IngestRow, event: BenchEvent) => [
    sameWork("INSERT", ingest(row, insertRequest(event))),
    sameWork(
      "INSERT by pgbench",
      (postgres) => runPgbench(postgres, row.clients, event, context.measureMs),
    ),
  ];
  const batchVariants = (row: IngestRow, events: BenchEvent[]) => [
    shortcut("COPY", ingest(row, copyRequest(events))),
    sameWork("INSERT from JSON", ingest(row, insertJsonRequest(events))),
  ];
  return {
    name: "PostgreSQL",
    variantsOf(rowName) {
      const row = INGEST_ROWS[rowName];
      if (row !== undefined) {
        const events = typicalEvents(row.batchEvents);
        return row.batchEvents === 1 ? singleVariants(row, events[0]!) : batchVariants(row, events);
      }
      switch (rowName) {
        case "replay-tail":
          return [sameWork("SELECT", (postgres) => measureReplay(postgres, context))];
        case "deliver":
          return [sameWork("LISTEN", (postgres) => measureDelivery(postgres, context))];
        default:
          return [];
      }
    },
  };
}

function typicalEvents(count: number): BenchEvent[] {
  return eventsOf(new BatchRequest("postgres", count).next());
}

/** Opens a session with all statements prepared. */
export async function openPrepared(
  postgres: Postgres,
  onNotification?: () => void,
): Promise<Connection<PgReply>> {
  const connection = await openPostgres(postgres, onNotification);
  const parses = Object.entries(STATEMENTS).map(([name, sql]) => parseMessage(name, sql));
  await connection.exchange(Buffer.concat([...parses, syncMessage()]));
  return connection;
}

function insertRequest(event: BenchEvent): Buffer {
  return Buffer.concat([executeMessages("insert", columnsOf(event)), syncMessage()]);
}

function insertJsonRequest(events: BenchEvent[]): Buffer {
  const parameters = [Buffer.from(BENCH_SOURCE), Buffer.from(JSON.stringify(events))];
  return Buffer.concat([executeMessages("insert_json", parameters), syncMessage()]);
}

/** Combines the command and its data in one write, which saves a round trip. */
export function copyRequest(events: BenchEvent[]): Buffer {
  const copy = queryMessage(`COPY events (${COLUMNS}) FROM STDIN`);
  return Buffer.concat([copy, copyMessages(events.map(valuesOf))]);
}

/** Requests the event with a given key. */
export function keyRequestOf(key: string): Buffer {
  return Buffer.concat([executeMessages("key", [Buffer.from(key)]), syncMessage()]);
}

/** Returns an event's column values as strings. */
function valuesOf(event: BenchEvent): string[] {
  const { stream, record_key, kind, occurred_at, payload } = event;
  return [BENCH_SOURCE, stream, record_key, kind, occurred_at, JSON.stringify(payload)];
}

/** Returns an event's column values in binary. */
function columnsOf(event: BenchEvent): Buffer[] {
  return valuesOf(event).map((value, column) =>
    column === OCCURRED_AT ? timestamp(value) : Buffer.from(value)
  );
}

async function measureIngest(
  postgres: Postgres,
  { clients, batchEvents }: IngestRow,
  request: Buffer,
  context: BenchContext,
): Promise<Measurement> {
  const connections = await Promise.all(
    Array.from({ length: clients }, () => openPrepared(postgres)),
  );
  await runSql(postgres, "SELECT pg_stat_reset_shared('wal')");
  const writers = connections.map((connection) => writer(connection, request, batchEvents));
  const measurement = await measureLoad(writers, postgres.pid, context);
  return { ...measurement, eventsPerSync: await eventsPerSync(postgres) };
}

/** Returns the rows per sync of the write-ahead log since its counters were reset. */
async function eventsPerSync(postgres: Postgres): Promise<number> {
  const connection = await openPrepared(postgres);
  const ask = async (statement: string) => {
    const request = [executeMessages(statement, []), syncMessage()];
    return Number((await connection.exchange(Buffer.concat(request))).lastId);
  };
  // A session flushes its counters when it ends.
  while (await ask("sessions") > 1) await delay(SESSION_POLL_MS);
  const per1000Syncs = await ask("per_1000_syncs");
  connection.close(terminateMessage());
  return per1000Syncs / 1000;
}

function writer(connection: Connection<PgReply>, request: Buffer, events: number): LoadClient {
  return {
    exchange(done, failed) {
      connection.send(request, 1, ({ tag }) => {
        if (tag.endsWith(` ${events}`)) done(events);
        else failed(new Error(`PostgreSQL returned ${tag} for ${events} events`));
      }, failed);
    },
    close: () => connection.close(terminateMessage()),
  };
}

/** Reads the table page by page, repeatedly. */
function reader(connection: Connection<PgReply>, logEvents: number): LoadClient {
  let after = 0n;
  let readEvents = 0;
  return {
    exchange(done, failed) {
      const request = [executeMessages("page", [int64(after)]), syncMessage()];
      connection.send(Buffer.concat(request), 1, ({ rows, lastId }) => {
        const expected = Math.min(PAGE_EVENTS, logEvents - readEvents);
        if (rows !== expected) {
          return failed(new Error(`a page has ${rows} rows, expected ${expected}`));
        }
        readEvents += rows;
        after = lastId;
        if (readEvents === logEvents) [after, readEvents] = [0n, 0];
        done(rows);
      }, failed);
    },
    close: () => connection.close(terminateMessage()),
  };
}

async function measureReplay(postgres: Postgres, context: BenchContext): Promise<Measurement> {
  const connection = await openPrepared(postgres);
  const request = copyRequest(typicalEvents(FILL_BATCH_EVENTS));
  const batches = Math.ceil(context.replayEvents / FILL_BATCH_EVENTS);
  for (let batch = 0; batch < batches; batch++) await connection.exchange(request);
  await connection.exchange(queryMessage("VACUUM ANALYZE events"));
  const clients = [reader(connection, batches * FILL_BATCH_EVENTS)];
  return await measureLoad(clients, postgres.pid, context);
}

async function measureDelivery(postgres: Postgres, context: BenchContext): Promise<Measurement> {
  const arrivals = new Arrivals();
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {});
  const follower = await follow(postgres, arrivals, failure.reject);
  const sender = await openPrepared(postgres);
  const [event] = typicalEvents(1);
  const insert = executeMessages("insert", columnsOf(event!));
  // Use one transaction, so that there is only one sync.
  const request = Buffer.concat([insert, executeMessages("notify", []), syncMessage()]);
  const send = async () => {
    await sender.exchange(request);
  };
  try {
    const delivery = { serverPid: postgres.pid, send, failed: failure.promise };
    return await measureArrivals(delivery, arrivals, context);
  } finally {
    sender.close(terminateMessage());
    follower.close(terminateMessage());
  }
}

/** Requests the next rows when notified of them. */
async function follow(
  postgres: Postgres,
  arrivals: Arrivals,
  onFailure: (error: Error) => void,
): Promise<Connection<PgReply>> {
  let after = 0n;
  let isAsking = false;
  let isTold = false;
  const ask = () => {
    isAsking = true;
    isTold = false;
    const request = [executeMessages("page", [int64(after)]), syncMessage()];
    follower.send(Buffer.concat(request), 1, ({ rows, lastId }) => {
      isAsking = false;
      if (rows > 0) after = lastId;
      arrivals.markReceived(rows);
      if (isTold) ask();
    }, onFailure);
  };
  const follower = await openPrepared(postgres, () => {
    isTold = true;
    // Wait for the data being read, which may contain more notifications.
    if (!isAsking) queueMicrotask(() => isAsking || ask());
  });
  await follower.exchange(queryMessage(`LISTEN ${CHANNEL}`));
  return follower;
}

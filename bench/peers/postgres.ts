/**
 * PostgreSQL as a durable log, with the default configuration except for memory and socket. The
 * table has a sequence number as its primary key, and the payload as `json`, the cheapest validated
 * type. Inserting events from JSON does the same work as the service. COPY, with events already
 * split into columns, is the fastest variant.
 */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import postgres, { type Sql } from "postgres";
import { DeliveryTimes, sendAndMeasure } from "../support/delivery.ts";
import { LatencyHistogram } from "../support/latency_histogram.ts";
import { BENCH_SOURCE, keyedBatch } from "../support/requests.ts";
import { KEY_STEP } from "../support/workloads.ts";
import { measureLoops, type Measurement, measurementOf, measureTool } from "./measurement.ts";
import { AS_POSTGRES, requirePeer, runPeer, withPeer } from "./peer_process.ts";
import { type BenchContext, type BenchEvent, DELIVERY, eventsOf, INGEST_ROWS } from "./rows.ts";
import { PAGE_EVENTS, type Variant } from "./rows.ts";

const [USER, DATABASE, CHANNEL] = ["bench", "postgres", "events"];
const SESSION_POLL_MS = 5;

/** The durability settings have their default values, which are listed for the record. */
const SETTINGS = ["fsync=on", "synchronous_commit=on", "full_page_writes=on"];
SETTINGS.push("shared_buffers=512MB", "listen_addresses=");

const TABLE = `CREATE TABLE events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, source text NOT NULL, stream text NOT NULL,
  record_key text NOT NULL, kind text NOT NULL, occurred_at timestamptz,
  observed_at timestamptz NOT NULL DEFAULT now(), payload json NOT NULL
)`;
const COLUMNS = ["source", "stream", "record_key", "kind", "occurred_at", "payload"];
const INSERT = `INSERT INTO events (${COLUMNS})`;
const INSERT_JSON = `${INSERT} SELECT $1, stream, record_key, kind, occurred_at, payload ` +
  "FROM json_to_recordset($2) " +
  "AS e(stream text, record_key text, kind text, occurred_at timestamptz, payload json)";
const INSERT_AND_NOTIFY = `WITH inserted AS (${INSERT} VALUES ($1, $2, $3, $4, $5, $6) ` +
  `RETURNING id) SELECT pg_notify('${CHANNEL}', '') FROM inserted`;
const SELECT = `SELECT id, ${COLUMNS}, observed_at FROM events`;
const PAGE = `${SELECT} WHERE id > $1 ORDER BY id LIMIT ${PAGE_EVENTS}`;

/** A running server with an empty table `events`. */
interface Postgres {
  folder: string;
  pid: number;
  /** A session for questions about the server. */
  admin: Sql;
}

type Measure = (postgres: Postgres) => Promise<Measurement>;

export function postgresVariants(row: string, folder: string, context: BenchContext): Variant[] {
  const variant = (name: string, measureOne: Measure): Variant => {
    const measure = () => withPostgres(folder, measureOne);
    return { row, subject: "PostgreSQL", variant: name, isSameWork: true, measure };
  };
  if (row === "replay-tail") {
    return [variant("SELECT", (postgres) => measureReplay(postgres, context))];
  }
  if (row === "deliver") {
    return [variant("LISTEN", (postgres) => measureDelivery(postgres, context))];
  }
  const { clients, batchEvents } = INGEST_ROWS[row]!;
  const events = eventsOf(batchEvents);
  if (batchEvents === 1) {
    const values = valuesOf(events[0]!);
    const variables = Object.fromEntries(COLUMNS.map((name, column) => [name, values[column]!]));
    const script = `${INSERT} VALUES (${COLUMNS.map((name) => `:${name}`)});\n`;
    const pgbench = { script, variables, clients, requestEvents: 1 };
    return [variant("INSERT", (postgres) => measurePgbench(postgres, pgbench, context))];
  }
  const batches = (append: (sql: Sql) => Promise<unknown>): Measure => async (postgres) => {
    const sql = openSessions(folder, clients);
    const exchange = () => append(sql).then(() => batchEvents);
    const exchanges = Array.from({ length: clients }, () => exchange);
    const measurement = await measureLoops(exchanges, postgres.pid, context)
      .finally(() => sql.end());
    return { ...measurement, eventsPerSync: await eventsPerSync(postgres) };
  };
  const [copied, json] = [copyText(events), JSON.stringify(events)];
  const insertJson = (sql: Sql) => sql.unsafe(INSERT_JSON, [BENCH_SOURCE, json], { prepare: true });
  return [
    { ...variant("COPY", batches((sql) => copyIn(sql, copied))), isSameWork: false },
    variant("INSERT from JSON", batches(insertJson)),
  ];
}

/** Creates a cluster, whose write-ahead log is recycled in the run as in production. */
export async function createCluster(parent: string): Promise<string> {
  const folder = join(parent, "postgres");
  const owner = AS_POSTGRES.length === 0 ? [] : ["-o", "postgres"];
  await runPeer(["install", "-d", "-m", "700", ...owner, folder]);
  const options = ["-U", USER, "-A", "trust", "--no-locale", "-E", "UTF8", "--no-sync"];
  await runPeer([...AS_POSTGRES, requirePeer("initdb"), "-D", join(folder, "data"), ...options]);
  return folder;
}

/** Opens up to `max` sessions when they are needed. */
function openSessions(folder: string, max: number): Sql {
  // Events are already JSON.
  const json = { to: 114, from: [114], serialize: String, parse: String };
  const path = join(folder, ".s.PGSQL.5432");
  return postgres({ path, user: USER, database: DATABASE, max, types: { json }, onnotice() {} });
}

/** Runs the server with an empty table during `use`. */
export async function withPostgres<T>(
  folder: string,
  use: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  const settings = [...SETTINGS, `unix_socket_directories=${folder}`];
  const options = ["-D", join(folder, "data"), ...settings.flatMap((setting) => ["-c", setting])];
  const command = [...AS_POSTGRES, requirePeer("postgres"), ...options];
  const admin = openSessions(folder, 1);
  const isReady = () => admin`SELECT 1`;
  return await withPeer(command, isReady, "SIGINT", async (pid) => {
    try {
      await admin.unsafe(`DROP TABLE IF EXISTS events; ${TABLE}`);
      await admin`CHECKPOINT`;
      await admin`SELECT pg_stat_reset_shared('wal')`;
      return await use({ folder, admin, pid });
    } finally {
      await admin.end();
    }
  });
}

/** Returns an event's column values. */
function valuesOf(event: BenchEvent): string[] {
  const { stream, record_key, kind, occurred_at, payload } = event;
  return [BENCH_SOURCE, stream, record_key, kind, occurred_at, JSON.stringify(payload)];
}

/** Formats events for COPY. The only special character in them is the backslash. */
function copyText(events: BenchEvent[]): string {
  return events.map((event) => `${valuesOf(event).join("\t").replaceAll("\\", "\\\\")}\n`).join("");
}

async function copyIn(sql: Sql, text: string): Promise<void> {
  await pipeline([text], await sql.unsafe(`COPY events (${COLUMNS}) FROM STDIN`).writable());
}

/** Waits until the load's sessions have ended, since a session flushes its counters when it ends. */
async function sessionsEnded({ admin }: Postgres): Promise<void> {
  const others = () =>
    admin`SELECT FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`;
  while ((await others()).length > 0) await delay(SESSION_POLL_MS);
}

/** Returns the rows per sync of the write-ahead log since the server started. */
async function eventsPerSync(postgres: Postgres): Promise<number> {
  await sessionsEnded(postgres);
  const [row] = await postgres.admin`SELECT count(*)::int AS events,
    (SELECT greatest(wal_sync, 1)::int FROM pg_stat_wal) AS syncs FROM events`;
  return row!["events"] / row!["syncs"];
}

interface Pgbench {
  /** The transaction. A variable keeps its value from one to the next. */
  script: string;
  variables: Record<string, string>;
  clients: number;
  requestEvents: number;
}

async function measurePgbench(
  postgres: Postgres,
  { script, variables, clients, requestEvents }: Pgbench,
  { measureMs }: Pick<BenchContext, "measureMs">,
): Promise<Measurement> {
  const { folder, pid } = postgres;
  const [file, log] = [join(folder, "pgbench.sql"), "pgbench_log"];
  const command = [requirePeer("pgbench"), "-h", folder, "-U", USER, "-n", "-M", "prepared"];
  command.push("-f", file, "-c", `${clients}`, "-l", "--log-prefix", join(folder, log));
  for (const [name, value] of Object.entries(variables)) command.push("-D", `${name}=${value}`);
  await writeFile(file, script);
  const run = async (requests: number) => {
    const output = await runPeer([...command, "-t", `${requests}`, DATABASE]);
    await sessionsEnded(postgres);
    const rate = Number(/^tps = ([0-9.]+) /m.exec(output)?.[1]);
    if (!(rate > 0)) throw new Error(`pgbench printed no rate: ${output}`);
    const latencies = new LatencyHistogram();
    const path = join(folder, (await readdir(folder)).find((name) => name.startsWith(log))!);
    // The third field is the latency in microseconds.
    for (const line of (await readFile(path, "utf8")).trim().split("\n")) {
      latencies.record(Number(line.split(" ")[2]) / 1000);
    }
    await rm(path);
    const [p50Ms, p99Ms] = [latencies.quantileMs(0.5), latencies.quantileMs(0.99)];
    return { eventsPerSecond: rate * requestEvents, p50Ms, p99Ms };
  };
  const measurement = await measureTool(run, requestEvents, clients, pid, measureMs);
  return { ...measurement, eventsPerSync: await eventsPerSync(postgres) };
}

async function fillTable(
  { admin }: Postgres,
  events: number,
  batch: (number: number) => BenchEvent[],
): Promise<void> {
  for (let number = 0; number < events / PAGE_EVENTS; number++) {
    await copyIn(admin, copyText(batch(number)));
  }
  await admin`VACUUM ANALYZE events`;
  await admin`CHECKPOINT`;
}

/** Reads the table page by page, repeatedly. */
async function measureReplay(postgres: Postgres, context: BenchContext): Promise<Measurement> {
  const { replayEvents } = context;
  await fillTable(postgres, replayEvents, () => eventsOf(PAGE_EVENTS));
  const script = `${PAGE.replace("$1", ":after")};\n` +
    `\\set after (:after + ${PAGE_EVENTS}) % ${replayEvents}\n`;
  const pages = { script, variables: { after: "0" }, clients: 1, requestEvents: PAGE_EVENTS };
  return { ...await measurePgbench(postgres, pages, context), eventsPerSync: null };
}

/** Fills the table with events of distinct keys, and an index on them. */
export async function fillKeyed(postgres: Postgres, events: number): Promise<void> {
  await postgres.admin`CREATE INDEX ON events (record_key)`;
  await fillTable(postgres, events, (number) => eventsOf(0, keyedBatch(number, PAGE_EVENTS)));
}

/** Looks up one of `keys` keys after another, with one client. */
export async function measureLookups(
  postgres: Postgres,
  keys: number,
  measureMs: number,
): Promise<Measurement> {
  const script = `${SELECT} WHERE record_key = 'customer-' || :key::text ORDER BY id;\n` +
    `\\set key (:key + ${KEY_STEP}) % ${keys}\n`;
  const lookups = { script, variables: { key: "0" }, clients: 1, requestEvents: 1 };
  return { ...await measurePgbench(postgres, lookups, { measureMs }), eventsPerSync: null };
}

/** Sends events with a NOTIFY each. The follower requests the next rows when notified of them. */
async function measureDelivery({ folder, pid: serverPid }: Postgres, context: BenchContext) {
  const sql = openSessions(folder, 2);
  const times = new DeliveryTimes();
  const received = times.receiver();
  const failure = Promise.withResolvers<never>();
  let [after, isAsking, isTold] = ["0", false, false];
  const ask = async () => {
    isTold = true;
    if (isAsking) return;
    for (isAsking = true; isTold;) {
      isTold = false;
      const rows = await sql.unsafe(PAGE, [after], { prepare: true });
      received(rows.length);
      after = rows.at(-1)?.["id"] ?? after;
    }
    isAsking = false;
  };
  await sql.listen(CHANNEL, () => void ask().catch(failure.reject));
  const values = valuesOf(eventsOf(1)[0]!);
  const send = () => sql.unsafe(INSERT_AND_NOTIFY, values, { prepare: true });
  try {
    const sending = sendAndMeasure(send, times, { ...DELIVERY, ...context, serverPid });
    const result = await Promise.race([failure.promise, sending]);
    return measurementOf({ ...result, latencies: result.fromSend });
  } finally {
    await sql.end();
  }
}

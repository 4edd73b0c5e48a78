/**
 * PostgreSQL as a durable log, with the default configuration except for memory and socket. The
 * table has a sequence number as its primary key, and the payload as `json`, the cheapest validated
 * type. Inserting events from JSON does the same work as the service. COPY, with events already
 * split into columns, is the fastest variant.
 */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import postgresClient from "postgres";
import { DeliveryTimes, sendAndMeasure } from "../support/delivery.ts";
import { LatencyHistogram } from "../support/latency_histogram.ts";
import { BENCH_SOURCE, PAGE_EVENTS } from "../support/requests.ts";
import { INGEST_LOADS, type IngestLoad, KEY_STEP } from "../support/workloads.ts";
import {
  type LoadTimes,
  type Measurement,
  measurementOf,
  measureTool,
  type ToolLoad,
} from "./measurement.ts";
import { AS_POSTGRES, findPeer, runPeer, withPeer } from "./peer_process.ts";
import { type BenchContext, type BenchEvent, eventsOf, type Variant } from "./rows.ts";

const [USER, DATABASE, CHANNEL] = ["bench", "postgres", "events"];
/** An argument of a program has a maximum size of 128 KiB. */
const ARGUMENT_CHARS_MAX = 100_000;

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
const SELECT = `SELECT id, ${COLUMNS}, observed_at FROM events`;
const PAGE = `${SELECT} WHERE id > $1 ORDER BY id LIMIT ${PAGE_EVENTS}`;
const INSERT_AND_NOTIFY = `WITH inserted AS (${INSERT} VALUES ($1, $2, $3, $4, $5, $6) ` +
  `RETURNING id) SELECT pg_notify('${CHANNEL}', '') FROM inserted`;
const FROM_JSON = `SELECT '${BENCH_SOURCE}', stream, record_key, kind, occurred_at, payload ` +
  "FROM json_to_recordset((JSON)::json) " +
  "AS e(stream text, record_key text, kind text, occurred_at timestamptz, payload json)";

/** A running server with an empty table `events`. */
interface Postgres {
  folder: string;
  pid: number;
}

type Measure = (postgres: Postgres, context: BenchContext) => Promise<Measurement>;

export function postgresVariants(row: string, folder: string, context: BenchContext): Variant[] {
  const ingest = INGEST_LOADS[row];
  const variant = (name: string, measureOne: Measure): Variant => {
    const measure = () => withPostgres(folder, (postgres) => measureOne(postgres, context));
    return { row, subject: "PostgreSQL", variant: name, isSameWork: true, measure };
  };
  if (row === "replay-tail") return [variant("SELECT", measureReplay)];
  if (row === "deliver") return [variant("LISTEN", measureDelivery)];
  const { clients, batchEvents } = ingest!;
  const events = eventsOf(batchEvents);
  const insert = (name: string, sql: string, values: Record<string, string>) => {
    const load = { script: `${INSERT} ${sql};\n`, values, clients, requestEvents: batchEvents };
    return variant(name, (postgres) => measurePgbench(postgres, load, context));
  };
  if (batchEvents === 1) {
    const values = valuesOf(events[0]!).map((value, at) => [COLUMNS[at]!, value]);
    const sql = `VALUES (${COLUMNS.map((name) => `:${name}`)})`;
    return [insert("INSERT", sql, Object.fromEntries(values))];
  }
  const text = JSON.stringify(events.map(({ source: _, ...event }) => event));
  const parts = text.match(new RegExp(`.{1,${ARGUMENT_CHARS_MAX}}`, "gu"))!;
  const values = Object.fromEntries(parts.map((part, at) => [`part${at}`, part]));
  const json = Object.keys(values).map((name) => `:${name}::text`).join(" || ");
  const copy = variant("COPY", (postgres) => measureCopy(postgres, events, ingest!, context));
  return [
    { ...copy, isSameWork: false },
    insert("INSERT from JSON", FROM_JSON.replace("JSON", json), values),
  ];
}

/** Creates a cluster, whose write-ahead log is recycled in the run as in production. */
export async function createCluster(parent: string): Promise<string> {
  const folder = join(parent, "postgres");
  const owner = AS_POSTGRES.length === 0 ? [] : ["-o", "postgres"];
  await runPeer(["install", "-d", "-m", "700", ...owner, folder]);
  const options = ["-U", USER, "-A", "trust", "--no-locale", "-E", "UTF8", "--no-sync"];
  await runPeer([...AS_POSTGRES, findPeer("initdb")!, "-D", join(folder, "data"), ...options]);
  return folder;
}

/** Runs the server with an empty table during `use`. */
export async function withPostgres<T>(
  folder: string,
  use: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  const settings = [...SETTINGS, `unix_socket_directories=${folder}`];
  const options = ["-D", join(folder, "data"), ...settings.flatMap((setting) => ["-c", setting])];
  const command = [...AS_POSTGRES, findPeer("postgres")!, ...options];
  return await withPeer(command, () => runSql(folder, "SELECT 1"), async (pid) => {
    await runSql(folder, "DROP TABLE IF EXISTS events", TABLE, "CHECKPOINT");
    return await use({ folder, pid });
  });
}

function psqlIn(folder: string): string[] {
  return [findPeer("psql")!, "-h", folder, "-U", USER, "-XqAt", "-v", "ON_ERROR_STOP=1", DATABASE];
}

/** Runs statements in a session of their own. @returns the rows. */
function runSql(folder: string, ...statements: string[]): Promise<string> {
  return runPeer([...psqlIn(folder), ...statements.flatMap((statement) => ["-c", statement])]);
}

function valuesOf(event: BenchEvent): string[] {
  const values = COLUMNS.map((name) => event[name]);
  return values.map((value) => typeof value === "string" ? value : JSON.stringify(value));
}

/** Formats events for COPY. The only special character in them is the backslash. */
function copyText(events: BenchEvent[]): string {
  return events.map((event) => `${valuesOf(event).join("\t").replaceAll("\\", "\\\\")}\n`).join("");
}

interface PgbenchLoad extends Omit<ToolLoad, "serverPid"> {
  /** The transaction. A variable keeps its value from one to the next. */
  script: string;
  /** The first values of the variables. */
  values: Record<string, string>;
}

function measurePgbench(
  postgres: Postgres,
  { script, values, clients, requestEvents }: PgbenchLoad,
  times: LoadTimes,
): Promise<Measurement> {
  const { folder, pid: serverPid } = postgres;
  const [file, log] = [join(folder, "pgbench.sql"), "pgbench_log"];
  const command = [findPeer("pgbench")!, "-h", folder, "-U", USER, "-n", "-M", "prepared"];
  command.push("-f", file, "-c", `${clients}`, "-l", "--log-prefix", join(folder, log));
  for (const [name, value] of Object.entries(values)) command.push("-D", `${name}=${value}`);
  return measureTool({ serverPid, clients, requestEvents }, times, async (requests) => {
    await writeFile(file, script);
    const output = await runPeer([...command, "-t", `${requests}`, DATABASE]);
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
  });
}

/** Copies batches with psql, which prints the time before and after them. */
function measureCopy(
  postgres: Postgres,
  events: BenchEvent[],
  { clients, batchEvents: requestEvents }: IngestLoad,
  times: LoadTimes,
): Promise<Measurement> {
  const { folder, pid: serverPid } = postgres;
  const [file, script] = [join(folder, "batch.tsv"), join(folder, "copy.sql")];
  const time = "SELECT extract(epoch FROM clock_timestamp());\n";
  return measureTool({ serverPid, clients, requestEvents }, times, async (requests) => {
    await writeFile(file, copyText(events));
    const copy = `\\copy events (${COLUMNS}) FROM '${file}'\n`;
    await writeFile(script, `${time}${copy.repeat(requests)}${time}`);
    const run = () => runPeer([...psqlIn(folder), "-f", script]);
    const outputs = await Promise.all(Array.from({ length: clients }, run));
    const spans = outputs.map((output) => output.split("\n").map(Number));
    const rates = spans.map(([start, end]) => requests * requestEvents / (end! - start!));
    return { eventsPerSecond: rates.reduce((sum, rate) => sum + rate, 0) };
  });
}

/** Fills the table with events of distinct keys. */
async function fillTable({ folder }: Postgres, count: number): Promise<void> {
  const [event] = eventsOf(1);
  const values = valuesOf({ ...event, record_key: "" }).map((value) => `'${value}'`);
  const row = `${values}`.replace("''", "'customer-' || number");
  const insert = `${INSERT} SELECT ${row} FROM generate_series(0, ${count - 1}) AS number`;
  await runSql(folder, insert, "VACUUM ANALYZE events", "CHECKPOINT");
}

/** Reads the table page by page, repeatedly. */
const measureReplay: Measure = async (postgres, context) => {
  const { replayEvents } = context;
  await fillTable(postgres, replayEvents);
  const next = `\\set after (:after + ${PAGE_EVENTS}) % ${replayEvents}`;
  const script = `${PAGE.replace("$1", ":after")};\n${next}\n`;
  const load = { script, values: { after: "0" }, clients: 1, requestEvents: PAGE_EVENTS };
  return await measurePgbench(postgres, load, context);
};

/** Fills a table with `keys` events and an index on their keys. */
export async function fillKeyed(postgres: Postgres, keys: number): Promise<void> {
  await fillTable(postgres, keys);
  await runSql(postgres.folder, "CREATE INDEX ON events (record_key)", "CHECKPOINT");
}

/** Looks up one of `keys` keys after another, with one client. */
export function measureLookups(postgres: Postgres, keys: number, times: LoadTimes) {
  const query = `${SELECT} WHERE record_key = 'customer-' || :key::text ORDER BY id`;
  const script = `${query};\n\\set key (:key + ${KEY_STEP}) % ${keys}\n`;
  const load = { script, values: { key: "0" }, clients: 1, requestEvents: 1 };
  return measurePgbench(postgres, load, times);
}

/** Sends events with a NOTIFY each. The follower requests the next rows when notified of them. */
const measureDelivery: Measure = async ({ folder, pid: serverPid }, context) => {
  const path = join(folder, ".s.PGSQL.5432");
  // The payload is already JSON.
  const types = { json: { to: 114, from: [114], serialize: String, parse: String } };
  const sql = postgresClient({ path, user: USER, database: DATABASE, max: 2, types });
  const times = new DeliveryTimes();
  const failure = Promise.withResolvers<never>();
  let [after, asked] = ["0", Promise.resolve()];
  const ask = async () => {
    const rows = await sql.unsafe(PAGE, [after], { prepare: true });
    times.receive(rows.length);
    after = rows.at(-1)?.["id"] ?? after;
  };
  await sql.listen(CHANNEL, () => {
    asked = asked.then(ask);
    asked.catch(failure.reject);
  });
  const values = valuesOf(eventsOf(1)[0]!);
  const send = () => sql.unsafe(INSERT_AND_NOTIFY, values, { prepare: true });
  try {
    const sending = sendAndMeasure(send, times, { ...context, serverPid });
    const result = await Promise.race([failure.promise, sending]);
    return measurementOf({ ...result, latencies: result.fromSend });
  } finally {
    await sql.end();
  }
};

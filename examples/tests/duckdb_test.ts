/** The results from `duckdb.sql` agree with replay, wherever a log's events are. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { copyFile, cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { canonicalize, type CommittedEvent, EventLogClient } from "../../mod.ts";
import { randomInteger, randomItem, seededRandom, testSeed } from "../../tools/support/random.ts";
import { type Row, rowsOf, withDuckDb } from "../../tests/support/duckdb.ts";
import { readLog } from "./support/served.ts";
import { type Deployment, withDeployment, withServing } from "../../tests/support/deployment.ts";

const SCRIPT = new URL("../duckdb.sql", import.meta.url);
type Query = (sql: string) => Promise<Row[]>;

const seed = testSeed();

/** Appends changes to a few records in a few streams, plus events that change no record. */
async function appendChanges({ serving }: Deployment, random: () => number, batches: number) {
  const client = new EventLogClient(serving.fetch);
  for (let n = 0; n < batches; n++) {
    const events = Array.from({ length: randomInteger(random, 1, 30) }, (_, index) => ({
      stream: randomItem(random, ["orders", "returns"]),
      record_key: randomItem(random, ["1", "2", 'Zoë "Z"', "4'", "5"]),
      kind: randomItem(random, ["upserted", "upserted", "deleted", "reviewed"]),
      payload: randomItem(random, [{ total: index / 4, "9": [n] }, { total: "much" }, null, "x"]),
      ...(index % 3 === 0 && { occurred_at: `2026-01-31T00:00:${10 + index}.123456789Z` }),
    }));
    const source = randomItem(random, ["shop", "crm"]);
    await client.append({ source, batchId: `${seed}/${random()}`, events });
  }
}

/** Creates files that do not belong to the log next to its segments. */
async function addForeignFiles(logDir: string): Promise<void> {
  const dir = join(logDir, "segments");
  const [segment] = await readdir(dir);
  await copyFile(join(dir, segment!), join(dir, segment!.replace(/_.*_/, "_x_")));
  await writeFile(join(dir, "new.parquet.tmp"), "PAR1");
  await writeFile(join(dir, "torn.parquet"), "PAR1");
}

/** Runs the script on a log, then `use` in the same session with the query results. */
function withScript(
  variables: Record<string, string>,
  use: (query: Query, results: Row[][]) => Promise<void>,
): Promise<void> {
  return withDuckDb(async (connection) => {
    for (const [name, value] of Object.entries(variables)) {
      await connection.run(`SET VARIABLE ${name} = '${value}'`);
    }
    const statements = await connection.extractStatements(await readFile(SCRIPT, "utf8"));
    const results: Row[][] = [];
    for (let index = 0; index < statements.count; index++) {
      const reader = await (await statements.prepare(index)).runAndReadAll();
      results.push(reader.getRowObjectsJson());
    }
    await use((sql) => rowsOf(connection, sql), results.filter((rows) => rows.length > 0));
  });
}

/** Returns the state of every record according to replay. */
function recordsOf(log: CommittedEvent[]): Row[] {
  const records = new Map<string, Row>();
  for (const { source, stream, record_key, kind, payload, event_id } of log) {
    const key = JSON.stringify([source, stream, record_key]);
    const row = { source, stream, record_key, payload: canonicalize(payload), event_id };
    if (kind === "upserted") records.set(key, row);
    if (kind === "deleted") records.delete(key);
  }
  return [...records.values()];
}

/** Returns the list of streams according to replay. */
function streamsOf(log: CommittedEvent[]): Row[] {
  const streams = new Map<string, Row>();
  for (const { source, stream, event_id } of log) {
    const key = `${source}/${stream}`;
    const event_count = String(Number(streams.get(key)?.event_count ?? 0) + 1);
    streams.set(key, { source, stream, frontier_event_id: event_id, event_count });
  }
  return [...streams.keys()].sort().map((key) => streams.get(key)!);
}

/** Converts an event to a row in view `events`, except the batch digest, which replay omits. */
function rowOf({ payload, occurred_at = undefined, ...event }: CommittedEvent): Row {
  return {
    ...event,
    payload: canonicalize(payload),
    occurred_at: occurred_at ?? null,
    // DuckDB rounds timestamps down to microseconds.
    occurred_time: occurred_at?.replace("T", " ").replace("789Z", "+00") ?? null,
    observed_at: event.observed_at.replace("T", " ").replace(/\.?0*Z$/, "+00"),
  };
}

/** Adds a record to the stream that the script lists: all others may have been deleted. */
async function appendOrder(served: Deployment): Promise<void> {
  const events = [{ stream: "orders", record_key: "stays", kind: "upserted", payload: null }];
  const client = new EventLogClient(served.serving.fetch);
  await client.append({ source: "shop", batchId: "stays", events });
}

const byText = (a: Row, b: Row) => JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;

test(`duckdb.sql returns the same events, streams and records as replay (SEED=${seed})`, () =>
  withServing(async (served) => {
    const random = seededRandom(seed);
    const { logDir } = served;
    await appendChanges(served, random, 20);
    await served.seal();
    await served.start();
    await appendChanges(served, random, 10);
    await appendOrder(served);
    const log = await readLog(served);
    await addForeignFiles(logDir);

    await withScript({ log: logDir }, async (query, results) => {
      await query("SET TimeZone = 'UTC'");
      const events = await query("FROM events ORDER BY event_id");
      const rows = events.map(({ batch_digest, ...row }) => {
        assert.match(String(batch_digest), /^[0-9a-f]{64}$/);
        return row;
      });
      assert.deepEqual(rows, log.map(rowOf));

      const records = recordsOf(log);
      assert.deepEqual((await query("FROM records")).sort(byText), records.sort(byText));
      const orders = records.filter(({ source, stream }) =>
        source === "shop" && stream === "orders"
      );
      const totals = orders.map(({ record_key, payload }) => {
        const total = JSON.parse(payload as string)?.total;
        return { record_key, total: typeof total === "number" ? total : null };
      });
      const listed = results.at(-1)!;
      assert.deepEqual(listed, totals.sort(byText));
      assert.deepEqual(results.at(-2), streamsOf(log));
    });
  }));

test("duckdb.sql shows an empty log before the first start", () =>
  withDeployment(({ logDir }) =>
    withScript({ log: logDir }, async (query) => {
      for (const view of ["events", "streams", "records"]) {
        assert.deepEqual(await query(`FROM ${view}`), []);
      }
    })
  ));

test("duckdb.sql counts an event once while it moves, and leaves out a commit that is not whole", () =>
  withServing(async (served) => {
    const { logDir } = served;
    const client = new EventLogClient(served.serving.fetch);
    const event = { stream: "s", record_key: 'a,"payload":b', kind: "x" };
    const payloads = [1e21, { '","content_hash":"': '","batch_id":"', "é": [0.1] }];
    const events = payloads.map((payload) => ({ ...event, payload }));
    await client.append({ source: "shop", batchId: 'x","payload":1', events });
    await appendOrder(served);
    const log = await readLog(served);
    const ids = log.map(({ event_id }) => event_id);
    const tail = await readFile(join(logDir, "tail.ndjson"));
    const all = log.map(({ event_id, payload }) => ({ event_id, payload: canonicalize(payload) }));
    const assertShown = (expected: Row[], variables: Record<string, string> = {}) =>
      withScript({ log: logDir, ...variables }, async (query) => {
        const shown = await query("SELECT event_id, payload FROM events ORDER BY event_id");
        assert.deepEqual(shown, expected);
      });
    await assertShown(all);
    await assertShown(all.slice(0, 2), { through: ids[1]! });

    // A rotation has moved the tail, which was read before.
    const pending = join(logDir, "pending", `${ids[0]}_${ids[2]}.ndjson`);
    await writeFile(pending, tail);
    await assertShown(all);
    await rm(pending);
    // The last commit is cut off, before reserved space. A service would notice, so in a copy.
    const cut = `${logDir}-cut`;
    await cp(logDir, cut, { recursive: true });
    for (const cutBytes of [2, 100, 600]) {
      const reserved = Buffer.alloc(2000, 0xc3);
      const bytes = Buffer.concat([tail.subarray(0, -cutBytes), reserved]);
      await writeFile(join(cut, "tail.ndjson"), bytes);
      await assertShown(all.slice(0, 2), { log: cut });
    }

    // A seal has moved a pending file, which was read before.
    await served.seal();
    await writeFile(pending, tail);
    await assertShown(all);
    await rm(pending);
  }));

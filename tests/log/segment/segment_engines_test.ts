/** Other Parquet readers agree on the types, order, counts and values of segments. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import { ROW_GROUP_EVENTS_MAX } from "../../../src/limits.ts";
import { COLUMN_NAMES } from "../../../src/log/segment/segment_schema.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { withDuckDb } from "../../support/duckdb.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { hostileBatch, sealCommits, smallBatches, splitLines } from "../../support/test_segment.ts";

/** Largest output of the Python script. */
const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;

/** An event and the digest of its batch, normalized across readers. */
type Row = Record<typeof COLUMN_NAMES[number], string | null>;

interface Sample {
  parquet: Buffer;
  rows: Row[];
}

/** Strings that readers may mistake: byte order marks, NULs and both. */
const STRANGE = [
  "\ufeff",
  "\ufeffkey",
  "\ufeff\ufeff",
  "key\ufeff",
  "\0",
  "\0key",
  "a\0b\0",
  "\ufeff\0",
];
const LARGE_CHARS = 5_000_000;

/**
 * A segment of several row groups, and the expected rows. In the first row group, every event has
 * an `occurred_at`; in the second, none has. Both have dictionaries of one value. The others have
 * strange, large and hostile values.
 */
async function sample(random = new SeededRandom()): Promise<Sample> {
  const full = Array.from({ length: ROW_GROUP_EVENTS_MAX }, (_, n) => ({ recordKey: `k${n}` }));
  const dated = full.map((event) => ({ ...event, occurredAt: "2026-01-01T00:00:00.123456789Z" }));
  const large = ["\ufeff\0", "é"].map((text) => ({
    recordKey: "large",
    payload: text + "x".repeat(LARGE_CHARS),
  }));
  const strange = STRANGE.map((text) => ({ recordKey: text, kind: text, payload: text }));
  const hostile = Array.from(
    { length: 60 },
    (_, n) => hostileBatch(random, n, 1 + random.below(9)),
  );
  const sealed = await sealCommits([
    [preparedBatch("dated", { events: dated }), preparedBatch("undated", { events: full })],
    [preparedBatch("\ufeffstrange", { events: [...strange, ...large] })],
    hostile,
    smallBatches(4000),
  ]);
  assert.equal(sealed.segments.length, 1);
  const digests = sealed.entries.flatMap((entry) => Array(entry.events).fill(entry.batch_digest));
  return {
    parquet: sealed.storage.contents("0.parquet"),
    rows: splitLines(sealed.lines).map((line, n) => rowOf(line.toString(), digests[n])),
  };
}

function rowOf(line: string, batchDigest: string): Row {
  const event: CommittedEvent = JSON.parse(line);
  const start = line.indexOf('"payload":', line.indexOf('"observed_at":"')) + '"payload":'.length;
  return {
    ...event,
    occurred_at: event.occurred_at ?? null,
    payload: line.slice(start, line.lastIndexOf(',"content_hash":"')),
    batch_digest: batchDigest,
  };
}

const TYPES_IN_DUCKDB: Record<keyof Row, string> = {
  event_id: "UUID",
  source: "VARCHAR",
  stream: "VARCHAR",
  record_key: "VARCHAR",
  kind: "VARCHAR",
  occurred_at: "VARCHAR",
  observed_at: "TIMESTAMP WITH TIME ZONE",
  payload: "VARCHAR",
  content_hash: "BLOB",
  batch_id: "VARCHAR",
  batch_digest: "BLOB",
  event_hash: "BLOB",
};

const AS_TEXT: Partial<Record<keyof Row, string>> = {
  event_id: "event_id::VARCHAR",
  observed_at: "strftime(observed_at AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')",
  content_hash: "lower(hex(content_hash))",
  batch_digest: "lower(hex(batch_digest))",
  event_hash: "lower(hex(event_hash))",
};

type Query = (sql: string) => Promise<Record<string, unknown>[]>;

/** Runs `use` with a function that queries a file named `segment.parquet`. */
function withQueries(parquet: Buffer, use: (query: Query) => Promise<void>): Promise<void> {
  return withFolder((folder) =>
    withDuckDb(async (connection) => {
      const path = join(folder, "segment.parquet");
      await writeFile(path, parquet);
      await use(async (sql) => {
        const reader = await connection.runAndReadAll(sql.replaceAll("segment.parquet", path));
        return reader.getRowObjects();
      });
    })
  );
}

/** Reads all rows through DuckDB, with strings as hex digits, which keep a byte order mark. */
async function duckDbRows(query: Query): Promise<Row[]> {
  const texts = COLUMN_NAMES.map((name) => `${AS_TEXT[name] ?? `hex(encode(${name}))`} AS ${name}`);
  const read = await query(
    `SELECT ${texts} FROM read_parquet('segment.parquet', file_row_number=true) ` +
      "ORDER BY file_row_number",
  );
  return read.map((row) => {
    const entries = COLUMN_NAMES.map((name) => [name, textOf(name, row[name] as string | null)]);
    return Object.fromEntries(entries);
  });
}

function textOf(name: keyof Row, value: string | null): string | null {
  return value === null || name in AS_TEXT ? value : Buffer.from(value, "hex").toString();
}

test(`DuckDB reads the types, order and values of a segment (seed ${SEED})`, async () => {
  const { parquet, rows } = await sample();
  await withQueries(parquet, async (query) => {
    const columns = await query("DESCRIBE SELECT * FROM 'segment.parquet'");
    assert.deepEqual(
      Object.fromEntries(columns.map((row) => [row.column_name, row.column_type])),
      TYPES_IN_DUCKDB,
    );
    assert.deepEqual(columns.map((row) => row.column_name), [...COLUMN_NAMES]);
    assertSame(await duckDbRows(query), rows);
    for (const { event_id, stream } of [rows[0]!, rows[rows.length >> 1]!, rows.at(-1)!]) {
      const found = await query(
        "SELECT count(*) AS n, bool_and(json_valid(payload)) AS valid FROM 'segment.parquet' " +
          `WHERE event_id = '${event_id}' AND stream = '${stream}'`,
      );
      assert.deepEqual(found, [{ n: 1n, valid: true }]);
    }
  });
});

/** Compares row by row, since the message for all rows would be too long. */
function assertSame(read: readonly Row[], rows: readonly Row[]): void {
  assert.equal(read.length, rows.length);
  rows.forEach((row, n) => {
    for (const name of COLUMN_NAMES) {
      assert.ok(
        read[n]![name] === row[name],
        `row ${n}, ${name}: ${read[n]![name]?.slice(0, 100)}`,
      );
    }
  });
}

test("DuckDB uses Snappy, statistics, Bloom filters and metadata of a segment", async () => {
  // A fixed seed, because a random filter may by chance match the absent key.
  const { parquet, rows } = await sample(new SeededRandom(1));
  await withQueries(parquet, async (query) => {
    const chunks = await query("SELECT * FROM parquet_metadata('segment.parquet')");
    assert.deepEqual([...new Set(chunks.map((chunk) => chunk.compression))], ["SNAPPY"]);
    const filtered = chunks.filter((chunk) => chunk.bloom_filter_offset !== null);
    assert.deepEqual([...new Set(filtered.map((chunk) => chunk.path_in_schema))], [
      "record_key",
    ]);
    const bounded = chunks.filter((chunk) => chunk.stats_min_value !== null);
    assert.deepEqual([...new Set(bounded.map((chunk) => chunk.path_in_schema))].sort(), [
      ...["event_id", "observed_at"],
    ]);
    const metadata = await query("SELECT key, value FROM parquet_kv_metadata('segment.parquet')");
    assert.deepEqual(metadata.map(({ key }) => String(key)), ["service.segment"]);
    // True only if the filters exclude the value from all row groups.
    const excluded = async (column: string, value: string) => {
      const probe = await query(
        "SELECT bool_and(bloom_filter_excludes) AS excluded FROM " +
          `parquet_bloom_probe('segment.parquet', '${column}', '${value}')`,
      );
      return probe[0]!.excluded;
    };
    assert.ok(await excluded("record_key", "no such key"));
    for (const { record_key } of [rows[0]!, rows[rows.length >> 1]!, rows.at(-1)!]) {
      assert.ok(!(await excluded("record_key", record_key!)));
    }
  });
});

const PYTHON_SCRIPT = fileURLToPath(new URL("../../support/pyarrow_rows.py", import.meta.url));
const python = spawnSync("python3", ["-c", "import pyarrow.parquet"]);
const NO_PYARROW = python.status === 0 ? false : "pyarrow is not installed: pip install pyarrow";

/** Reads all rows through pyarrow, which verifies the checksums of pages that have one. */
function pyarrowRows(parquet: Buffer): Promise<Row[]> {
  return withFolder(async (folder) => {
    const path = join(folder, "segment.parquet");
    await writeFile(path, parquet);
    const { status, stdout, stderr } = spawnSync("python3", [PYTHON_SCRIPT, path], {
      maxBuffer: OUTPUT_BYTES_MAX,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    const columns: (string | null)[][] = stdout.trim().split("\n").map((line) => JSON.parse(line));
    return columns[0]!.map((_, n) =>
      Object.fromEntries(COLUMN_NAMES.map((name, c) => [name, columns[c]![n]])) as Row
    );
  });
}

test(`pyarrow reads the same values as DuckDB (seed ${SEED})`, { skip: NO_PYARROW }, async () => {
  const { parquet, rows } = await sample();
  assertSame(await pyarrowRows(parquet), rows);
});

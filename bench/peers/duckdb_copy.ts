/** Makes DuckDB write a tail's events to Parquet: the same rows as sealing, from the same lines. */
import { closeSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { type Measurement, ownClock } from "./measurement.ts";

const LF = 10;

/** Columns in a segment, with the types that are cheapest for DuckDB. */
const COLUMNS = "{event_id: 'UUID', source: 'VARCHAR', stream: 'VARCHAR', record_key: 'VARCHAR', " +
  "kind: 'VARCHAR', occurred_at: 'VARCHAR', observed_at: 'TIMESTAMP', payload: 'JSON', " +
  "content_hash: 'VARCHAR', batch_id: 'VARCHAR', event_hash: 'VARCHAR'}";

/** Copies the events in a tail, on all cores. @param folder for temporary input and output. */
export async function copyToParquet(tail: string, folder: string): Promise<Measurement> {
  const input = join(folder, "events.ndjson");
  const output = join(folder, "events.parquet");
  const events = writeLines(tail, input);
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  try {
    const source = `read_json('${input}', format = 'newline_delimited', columns = ${COLUMNS})`;
    const clock = ownClock();
    await connection.run(`COPY (FROM ${source}) TO '${output}' (FORMAT parquet)`);
    return clock.stop(events);
  } finally {
    connection.closeSync();
    instance.closeSync();
    rmSync(input, { force: true });
    rmSync(output, { force: true });
  }
}

/**
 * Extracts the event lines from a tail to a separate file. @returns the number of events.
 */
function writeLines(tail: string, path: string): number {
  const bytes = readFileSync(tail);
  const file = openSync(path, "w");
  let events = 0;
  try {
    for (let at = 0; at < bytes.length;) {
      const headerEnd = bytes.indexOf(LF, at) + 1;
      const { commit } = JSON.parse(bytes.toString("utf8", at, headerEnd)) as TailHeader;
      for (const batch of commit.batches) events += batch.events;
      at = headerEnd + commit.bytes;
      if (commit.bytes > 0) writeSync(file, bytes, headerEnd, commit.bytes);
    }
  } finally {
    closeSync(file);
  }
  return events;
}

/** The counts in a commit's header (see docs/format.md). */
interface TailHeader {
  commit: { batches: { events: number }[]; bytes: number };
}

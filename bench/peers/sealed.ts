/**
 * The rows about sealed history, all on one log. Each round appends a part of the log and seals it,
 * alternating with DuckDB. Queries follow once the whole log is sealed.
 */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import type { Workload } from "../support/load.ts";
import type { BenchOptions } from "../support/options.ts";
import { appendKeyed, type Deployment, withDeployment } from "../support/deployment.ts";
import { PAGE_EVENTS } from "../support/requests.ts";
import { keyWorkload, replayWorkload } from "../support/workloads.ts";
import { type Series, takeTurns } from "./comparison.ts";
import { type Measurement, measureWork } from "./measurement.ts";
import { measureWorkloads, withServed } from "./ours.ts";
import { runPeer } from "./peer_process.ts";
import { fillKeyed, measureLookups, withPostgres } from "./postgres.ts";
import type { BenchContext, Variant } from "./rows.ts";

/** Enough that startup is a small part of the time that `seal` and `verify` take. */
const SEALED_EVENTS = 3_000_000;

/** Columns in a segment, with the types that are cheapest for DuckDB. */
const COLUMNS = "{event_id: 'UUID', source: 'VARCHAR', stream: 'VARCHAR', record_key: 'VARCHAR', " +
  "kind: 'VARCHAR', occurred_at: 'VARCHAR', observed_at: 'TIMESTAMP', payload: 'JSON', " +
  "content_hash: 'VARCHAR', batch_id: 'VARCHAR', event_hash: 'VARCHAR'}";

/** @param cluster directory of the cluster; null if PostgreSQL is not installed. */
export async function measureSealed(
  { rows, rounds, events: eventsMin = SEALED_EVENTS, serverRuntime }: BenchOptions,
  cluster: string | null,
  context: BenchContext,
): Promise<Series[]> {
  const isAsked = ({ row }: { row: string }) => rows.includes(row);
  const ours = (row: string, measure: () => Promise<Measurement>): Variant => {
    return { row, subject: "ours", variant: serverRuntime, measure };
  };
  // Each round is rounded up to full batches.
  const batches = Math.ceil(eventsMin / rounds / PAGE_EVENTS);
  const events = batches * PAGE_EVENTS * rounds;
  return await withDeployment({ serverRuntime, parent: context.folder }, async (deployment) => {
    const command = (name: string, count: number) => () =>
      measureWork(count, () => deployment.run([name]));
    const served = (workload: Workload) => () =>
      withServed(deployment, (server) => measureWorkloads([workload], server, context));
    let firstBatch = 0;
    const copy = async () => {
      await appendKeyed(deployment, batches, firstBatch);
      firstBatch += batches;
      return await copyToParquet(deployment, batches * PAGE_EVENTS);
    };
    // DuckDB goes first, because sealing removes its input.
    const series = await takeTurns([
      { row: "seal", subject: "DuckDB", variant: "COPY TO parquet", measure: copy },
      ours("seal", command("seal", batches * PAGE_EVENTS)),
    ], rounds);
    const folder = join(deployment.folder, "data", "log", "segments");
    const segments = (await readdir(folder)).map((name) => join(folder, name));
    const checksum = () => measureWork(events, () => runPeer(["sha256sum", ...segments]));
    const variants: Variant[] = [
      ours("replay-segments", served(replayWorkload(events))),
      ours("verify", command("verify", events)),
      { row: "verify", subject: "sha256sum", variant: "of the files", measure: checksum },
    ];
    const lookups = [ours("key-lookup", served(keyWorkload(events)))];
    if (cluster === null || !rows.includes("key-lookup")) {
      variants.push(...lookups);
    } else {
      series.push(
        ...await withPostgres(cluster, async (postgres) => {
          await fillKeyed(postgres, events);
          const measure = () => measureLookups(postgres, events, context);
          const variant = "SELECT by index";
          lookups.push({ row: "key-lookup", subject: "PostgreSQL", variant, measure });
          return await takeTurns(lookups, rounds);
        }),
      );
    }
    series.push(...await takeTurns(variants.filter(isAsked), rounds));
    return series.filter(isAsked);
  });
}

/** Makes DuckDB write a tail's events to Parquet, on all cores: the same rows as sealing. */
async function copyToParquet({ folder }: Deployment, events: number): Promise<Measurement> {
  const [tail, output] = [join(folder, "data", "log", "tail.ndjson"), join(folder, "copy.parquet")];
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  try {
    const source = `read_json('${tail}', format = 'newline_delimited', columns = ${COLUMNS})`;
    // The lines of commits, one per 1,000 events, have none of the columns.
    const copy = `COPY (FROM ${source} WHERE event_id IS NOT NULL) TO '${output}' (FORMAT parquet)`;
    return await measureWork(events, () => connection.run(copy));
  } finally {
    connection.closeSync();
    instance.closeSync();
    await rm(output, { force: true });
  }
}

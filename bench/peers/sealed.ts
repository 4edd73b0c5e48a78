/**
 * The rows about sealed history, all on one log. Each round appends a part of the log and seals it,
 * alternating with DuckDB. Queries follow once the whole log is sealed.
 */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import type { Deployment, RuntimeName } from "../support/deployment.ts";
import type { Workload } from "../support/load.ts";
import { startUsage, USAGE_OF_COMMANDS, USAGE_OF_THIS_PROCESS } from "../support/usage.ts";
import { appendKeyed, withDeployment } from "../support/with_deployment.ts";
import { keyWorkload, replayWorkload } from "../support/workloads.ts";
import { type Series, takeTurns } from "./comparison.ts";
import { type Measurement, measurementOf } from "./measurement.ts";
import { measureWorkloads, withServed } from "./ours.ts";
import { findPeer, runPeer } from "./peer_process.ts";
import { fillKeyed, measureLookups, withPostgres } from "./postgres.ts";
import { type BenchContext, PAGE_EVENTS, type Subject, type Variant } from "./rows.ts";

/** Columns in a segment, with the types that are cheapest for DuckDB. */
const COLUMNS = "{event_id: 'UUID', source: 'VARCHAR', stream: 'VARCHAR', record_key: 'VARCHAR', " +
  "kind: 'VARCHAR', occurred_at: 'VARCHAR', observed_at: 'TIMESTAMP', payload: 'JSON', " +
  "content_hash: 'VARCHAR', batch_id: 'VARCHAR', event_hash: 'VARCHAR'}";

export interface SealedOptions {
  rows: string[];
  rounds: number;
  /** Number of events in the whole log. Each round is rounded up to full batches. */
  events: number;
  serverRuntime: RuntimeName;
  /** Directory of the cluster; null if PostgreSQL is not installed. */
  cluster: string | null;
}

export async function measureSealed(
  { rows, rounds, events: eventsMin, serverRuntime, cluster }: SealedOptions,
  context: BenchContext,
): Promise<Series[]> {
  const variant = (
    row: string,
    measure: () => Promise<Measurement>,
    subject: Subject = "ours",
    name: string = serverRuntime,
  ): Variant => ({ row, subject, variant: name, measure });
  const measureRows = (variants: Variant[]) =>
    takeTurns(variants.filter(({ row }) => rows.includes(row)), rounds);
  return await withDeployment({ serverRuntime, parent: context.folder }, async (deployment) => {
    const command = (name: string) => () => deployment.run([name], () => null);
    const served = (workload: Workload) => () =>
      withServed(deployment, (server) => measureWorkloads([workload], server, context));
    const batches = Math.ceil(eventsMin / rounds / PAGE_EVENTS);
    const [roundEvents, events] = [batches * PAGE_EVENTS, batches * PAGE_EVENTS * rounds];
    let firstBatch = 0;
    // DuckDB goes first, because sealing removes its input.
    const sealing = await takeTurns([
      variant(
        "seal",
        async () => {
          await appendKeyed(deployment, { firstBatch, batches, batchEvents: PAGE_EVENTS });
          firstBatch += batches;
          return await copyToParquet(deployment, roundEvents);
        },
        "DuckDB",
        "COPY TO parquet",
      ),
      variant("seal", () => measureCommand(roundEvents, command("seal"))),
    ], rounds);
    const folder = join(deployment.folder, "data", "log", "segments");
    const checksum = [
      findPeer("sha256sum") ?? "",
      ...(await readdir(folder)).map((name) => join(folder, name)),
    ];
    const checksums = () => measureCommand(events, () => runPeer(checksum));
    const others = await measureRows([
      variant("replay-segments", served(replayWorkload({ events, pageEvents: PAGE_EVENTS }))),
      variant("verify", () => measureCommand(events, command("verify"))),
      ...checksum[0] === "" ? [] : [variant("verify", checksums, "sha256sum", "of the files")],
    ]);
    const lookup = variant("key-lookup", served(keyWorkload(events)));
    const lookups = cluster === null || !rows.includes("key-lookup")
      ? await measureRows([lookup])
      : await withPostgres(cluster, async (postgres) => {
        await fillKeyed(postgres, events);
        const measure = () => measureLookups(postgres, events, context);
        return measureRows([
          lookup,
          variant("key-lookup", measure, "PostgreSQL", "SELECT by index"),
        ]);
      });
    return [...rows.includes("seal") ? sealing : [], ...others, ...lookups];
  });
}

async function measureCommand(events: number, run: () => Promise<unknown>): Promise<Measurement> {
  const usage = startUsage(USAGE_OF_COMMANDS);
  await run();
  return measurementOf({ ...usage(), events });
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
    const usage = startUsage(USAGE_OF_THIS_PROCESS);
    const { rowsChanged } = await connection.run(copy);
    if (rowsChanged !== events) throw new Error(`DuckDB copied ${rowsChanged} of ${events} events`);
    return measurementOf({ ...usage(), events });
  } finally {
    connection.closeSync();
    instance.closeSync();
    await rm(output, { force: true });
  }
}

/** The output from the benchmarks: a table, and the same figures as JSON. */
import { writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import process from "node:process";
import { probeDisk } from "../../tools/support/disk_probe.ts";
import { type BenchOptions, progress } from "./options.ts";

/** A load generator above this percentage of a core is considered the bottleneck. */
const CLIENT_PERCENT_MAX = 85;

/** A measured row: maps column names, in print order, to values. Null means not measured. */
export type Row = Record<string, string | number | null>;

export interface Report {
  benchmark: string;
  /** Runtime of the server. */
  server: string;
  /** Runtime of the load generator. */
  client: string;
  processors: number;
  /** One append and fdatasync on the same disk, without a server. */
  diskP50Ms: number;
  diskP99Ms: number;
  rows: Row[];
}

/** Prints the table to standard output and optionally writes the report to a file. */
export async function publish(
  benchmark: string,
  { serverRuntime: server, parent, jsonPath }: BenchOptions,
  rows: Row[],
): Promise<void> {
  const { p50Ms, p99Ms } = probeDisk(parent ?? tmpdir());
  const [diskP50Ms, diskP99Ms] = [rounded(p50Ms, 3), rounded(p99Ms, 3)];
  const client = process.execPath.split("/").at(-1) ?? "";
  const processors = availableParallelism();
  const head = `${benchmark}: server on ${server}, load from ${client}, ${processors} vCPUs; ` +
    `append + fdatasync without a server p50 ${diskP50Ms} ms, p99 ${diskP99Ms} ms`;
  process.stdout.write(`${head}\n\n${formatTable(rows)}\n`);
  const report: Report = { benchmark, server, client, processors, diskP50Ms, diskP99Ms, rows };
  if (jsonPath !== undefined) await writeFile(jsonPath, JSON.stringify(report, null, 2) + "\n");
}

/** Measures rows one after another, and publishes them. */
export async function publishRows(
  benchmark: string,
  options: BenchOptions,
  measureRow: (row: string) => Promise<Row>,
): Promise<void> {
  const measured: Row[] = [];
  for (const row of options.rows) {
    progress(row);
    measured.push(await measureRow(row));
    progress(formatTable(measured.slice(-1)));
  }
  await publish(benchmark, options, measured);
}

/** Pads columns to their widest cell. The first is left-aligned, and numbers are right-aligned. */
export function formatTable(rows: Row[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = [columns, ...rows.map((row) => columns.map((column) => formatCell(row[column])))];
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]!.length)));
  const lines = cells.map((line) =>
    line.map((cell, at) => at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!))
      .join("  ").trimEnd()
  );
  return lines.join("\n") + "\n";
}

function formatCell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return "-";
  return typeof value === "number" ? value.toLocaleString("en") : value;
}

/** Formats a load generator's share of a core in percent, marked if it was the bottleneck. */
export function formatClientShare(share: number | null): string {
  if (share === null) return "-";
  const percent = Math.round(share * 100);
  return `${percent}${percent > CLIENT_PERCENT_MAX ? "!" : ""}`;
}

export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

/** Converts to units of 10^6 bytes; null stays null. */
export function megabytes(bytes: number | null): number | null {
  return bytes === null ? null : Math.round(bytes / 1e6);
}

/** The rows of the comparison: what is done in each, and by which figures it is compared. */
import type { LoadTimes } from "./load.ts";
import type { Measurement } from "./measurement.ts";

/** One way of doing what a row asks for. */
export interface Variant {
  name: string;
  /** The nearest that the peer has to what ours does; each variant may be the best one. */
  isSameWork: boolean;
  measure(): Promise<Measurement>;
}

/** Who is measured; a goal is no one, but a figure to reach. */
export type SubjectName = "ours" | "Redis" | "PostgreSQL" | "DuckDB" | "sha256sum" | "goal";

export interface Subject {
  name: SubjectName;
  /** None for a row that this subject has no part in. */
  variantsOf(row: string): Variant[];
}

/** What all subjects need to know. */
export interface BenchContext extends LoadTimes {
  /** Where deployments, clusters and their data are made: the disk that is measured. */
  folder: string;
  /** Events in the log that is replayed. */
  replayEvents: number;
}

export interface IngestRow {
  clients: number;
  batchEvents: number;
}

export const INGEST_ROWS: Record<string, IngestRow> = {
  "single-1": { clients: 1, batchEvents: 1 },
  "single-16": { clients: 16, batchEvents: 1 },
  "single-64": { clients: 64, batchEvents: 1 },
  "batch-100-16": { clients: 16, batchEvents: 100 },
  "batch-1000-1": { clients: 1, batchEvents: 1000 },
  "batch-1000-4": { clients: 4, batchEvents: 1000 },
};

export const FILL_BATCH_EVENTS = 1000;
export const PAGE_EVENTS = 1000;

/** Rows measured each on servers of their own. */
export const SERVED_ROWS = [...Object.keys(INGEST_ROWS), "replay-tail", "deliver"];

/** Rows about sealed history, which share one log. */
export const SEALED_ROWS = ["replay-segments", "key-lookup", "seal", "verify"];

/** A figure by which a row is compared, as a line of the table. */
export interface Figure {
  label: string;
  row: string;
  value: "eventsPerSecond" | "p50Ms" | "p99Ms";
}

const rate = (row: string): Figure => ({ label: row, row, value: "eventsPerSecond" });

export const FIGURES: Figure[] = [
  ...Object.keys(INGEST_ROWS).map(rate),
  rate("replay-tail"),
  { label: "deliver p50", row: "deliver", value: "p50Ms" },
  { label: "deliver p99", row: "deliver", value: "p99Ms" },
  rate("replay-segments"),
  { label: "key-lookup p50", row: "key-lookup", value: "p50Ms" },
  rate("seal"),
  rate("verify"),
];

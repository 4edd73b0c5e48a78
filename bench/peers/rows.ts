/** The rows in the comparison: what each measures, and the figures that are compared. */
import type { LoadTimes } from "./load.ts";
import type { Measurement } from "./measurement.ts";

/** One way to do the work of a row. */
export interface Variant {
  name: string;
  /** Whether this is the peer's closest equivalent to the service's work. */
  isSameWork: boolean;
  measure(): Promise<Measurement>;
}

/** A measured subject. A floor is a bare server, and a goal is only a figure. */
export type SubjectName =
  | "ours"
  | "Redis"
  | "PostgreSQL"
  | "DuckDB"
  | "sha256sum"
  | "floor"
  | "goal";

export interface Subject {
  name: SubjectName;
  /** Empty if this subject does not take part in the row. */
  variantsOf(row: string): Variant[];
}

/** Settings shared by all subjects. */
export interface BenchContext extends LoadTimes {
  /** Directory for deployments, clusters and their data, on the disk under test. */
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

/** Rows that are each measured on a new server. */
export const SERVED_ROWS = [...Object.keys(INGEST_ROWS), "replay-tail", "deliver"];

/** Rows about sealed history, which share one log. */
export const SEALED_ROWS = ["replay-segments", "key-lookup", "seal", "verify"];

/** A compared figure in a row, which becomes one line in the table. */
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

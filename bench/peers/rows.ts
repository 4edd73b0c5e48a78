/** The rows in the comparison: what each measures, and the figures that are compared. */
import { BENCH_SOURCE, typicalEvents } from "../support/requests.ts";
import { INGEST_LOADS } from "../support/workloads.ts";
import type { LoadTimes, Measurement } from "./measurement.ts";

/** A measured subject. A floor is a bare server. */
export type Subject = "ours" | "Redis" | "PostgreSQL" | "DuckDB" | "sha256sum" | "floor";

/** One way to do the work of a row. */
export interface Variant {
  row: string;
  subject: Subject;
  variant: string;
  /** Whether this is the peer's closest equivalent to the service's work. */
  isSameWork?: boolean;
  measure(): Promise<Measurement>;
}

/** Settings shared by all subjects. */
export interface BenchContext extends LoadTimes {
  /** Directory for deployments, clusters and their data, on the disk under test. */
  folder: string;
  /** Events in the log that is replayed: a multiple of a page. */
  replayEvents: number;
}

/** Rows that are each measured on a new server. */
export const SERVED_ROWS = [...Object.keys(INGEST_LOADS), "replay-tail", "deliver"];
/** Rows about sealed history, which share one log. */
export const SEALED_ROWS = ["replay-segments", "key-lookup", "seal", "verify"];

/** A compared figure in a row, which becomes one line in the table. */
export interface Figure {
  label: string;
  row: string;
  value: "eventsPerSecond" | "p50Ms" | "p99Ms";
}

const TIMES: Record<string, Figure[]> = {
  "deliver": [
    { label: "deliver p50", row: "deliver", value: "p50Ms" },
    { label: "deliver p99", row: "deliver", value: "p99Ms" },
  ],
  "key-lookup": [{ label: "key-lookup p50", row: "key-lookup", value: "p50Ms" }],
};
export const FIGURES: Figure[] = [...SERVED_ROWS, ...SEALED_ROWS].flatMap((row) =>
  TIMES[row] ?? [{ label: row, row, value: "eventsPerSecond" }]
);

/** A submitted event, with its source. */
export type BenchEvent = Record<string, unknown>;

/** Returns the events in a batch for the service. */
export function eventsOf(count: number): BenchEvent[] {
  return typicalEvents(count).map((event) => ({ source: BENCH_SOURCE, ...event }));
}

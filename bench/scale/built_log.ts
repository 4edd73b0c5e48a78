/**
 * An on-disk log for the scale benchmark, with the metadata that requests need. It is stored in the
 * deployment's directory, so that a kept log can be measured again.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Deployment } from "../support/deployment.ts";
import type { Shape } from "./history.ts";

/** Figures by name, in print order; null if unavailable on this system. */
export type Figures = Record<string, number | null>;

/** All ids are event ids. */
export interface LogFacts {
  shape: Shape;
  bulkBatches: number;
  bulkEvents: number;
  /** The only event of each old single-event stream, keyed by stream. */
  oldStreams: Record<string, string>;
  /** The last event in each of the batches spread evenly over the bulk, in order. */
  positions: string[];
  /** Figures from the build. */
  figures: Figures;
  /** First unused batch number. */
  nextBatch: number;
  /** The event that precedes the last full page. */
  endAfter: string;
  /** Number of measurements so far. It makes the ids of new batches unique. */
  askings: number;
}

export interface BuiltLog {
  deployment: Deployment;
  facts: LogFacts;
}

/** Returns the event at a given share of the bulk. */
export function positionAt({ positions }: LogFacts, share: number): string {
  return positions[Math.floor(positions.length * share)]!;
}

const FACTS_FILE = "scale.json";

/** Loads a built log; null if no complete one exists. */
export async function readFacts({ folder }: Deployment): Promise<LogFacts | null> {
  try {
    return JSON.parse(await readFile(join(folder, FACTS_FILE), "utf8"));
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return null;
    throw error;
  }
}

export async function writeFacts({ deployment, facts }: BuiltLog): Promise<void> {
  await writeFile(join(deployment.folder, FACTS_FILE), JSON.stringify(facts));
}

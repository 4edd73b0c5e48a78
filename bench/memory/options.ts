/** The command line for the memory benchmark. */
import { parseArgs } from "node:util";
import { type Shape, shapeNamed } from "../scale/history.ts";
import { ownRuntime, type RuntimeName } from "../support/deployment.ts";
import { positive, runtimeNamed } from "../support/options.ts";
import { type Kind, KINDS } from "./loads.ts";

/** All kinds of load at once. */
export const ALL = "all";

export interface MemoryOptions {
  serverRuntime: RuntimeName;
  /** Size of the log before the load. */
  events: number;
  shape: Shape;
  /** Directory in which the log is kept; undefined to remove it. */
  keep: string | undefined;
  /** Kinds of load by row name. */
  rows: Map<string, readonly Kind[]>;
  measureMs: number;
  jsonPath: string | undefined;
  /** Directory for deployments that are not kept; default: the system's temporary directory. */
  parent: string | undefined;
}

/** @throws {Error} if an option is unknown or invalid. */
export function parseMemoryOptions(args: string[]): MemoryOptions {
  const { values } = parseArgs({
    args,
    options: {
      "server-runtime": { type: "string", default: ownRuntime() },
      events: { type: "string", default: "1e6" },
      shape: { type: "string", default: "batch" },
      keep: { type: "string" },
      rows: { type: "string", default: [...KINDS, ALL].join(",") },
      seconds: { type: "string", default: "40" },
      json: { type: "string" },
      dir: { type: "string" },
    },
  });
  const rows = new Map(values.rows.split(",").map((name) => [name, kindsOf(name)]));
  return {
    serverRuntime: runtimeNamed(values["server-runtime"]),
    events: positive("--events", values.events),
    shape: shapeNamed(values.shape),
    keep: values.keep,
    rows,
    measureMs: positive("--seconds", values.seconds) * 1000,
    jsonPath: values.json,
    parent: values.dir,
  };
}

function kindsOf(row: string): readonly Kind[] {
  if (row === ALL) return KINDS;
  const kind = KINDS.find((name) => name === row);
  if (kind === undefined) throw new Error(`unknown row ${row}; use ${[...KINDS, ALL].join(", ")}`);
  return [kind];
}

/** The command line of the memory benchmark. */
import { parseArgs } from "node:util";
import { type Shape, shapeNamed } from "../scale/history.ts";
import { ownRuntime, type RuntimeName } from "../support/deployment.ts";
import { positive, runtimeNamed } from "../support/options.ts";
import { type Kind, KINDS } from "./loads.ts";

/** All kinds of load at once. */
export const ALL = "all";

export interface MemoryOptions {
  serverRuntime: RuntimeName;
  /** Of the log before any load. */
  events: number;
  shape: Shape;
  /** Folder where the built log is found, or stays; undefined: it is removed. */
  keep: string | undefined;
  /** Each by its name in the table. */
  rows: Map<string, readonly Kind[]>;
  measureMs: number;
  jsonPath: string | undefined;
  /** Folder for the deployments that are not kept; undefined for the system's temporary one. */
  parent: string | undefined;
}

/** @throws {Error} When an option is unknown or makes no sense. */
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
  if (kind === undefined) throw new Error(`no row ${row}; there are ${[...KINDS, ALL].join(", ")}`);
  return [kind];
}

/** The command line for the scale benchmark. */
import { parseArgs } from "node:util";
import { ownRuntime, type RuntimeName } from "../support/deployment.ts";
import { positive, runtimeNamed } from "../support/options.ts";
import { type Shape, shapeNamed } from "./history.ts";

export const PARTS = ["starts", "questions", "verify", "chain"] as const;
export type Part = typeof PARTS[number];

export interface ScaleOptions {
  serverRuntime: RuntimeName;
  /** Sizes of the logs, in events. */
  sizes: number[];
  shape: Shape;
  /** Directory in which logs are kept; undefined to remove them. */
  keep: string | undefined;
  /** Number of starts of each kind. Their median is reported. */
  starts: number;
  /** Duration of the replay through the whole log. */
  replayMs: number;
  /** The parts to measure. */
  parts: readonly Part[];
  /** Size of the tail during the requests. */
  tailBytes: number;
  jsonPath: string | undefined;
  /** Directory for deployments that are not kept; default: the system's temporary directory. */
  parent: string | undefined;
}

/** @throws {Error} if an option is unknown or invalid. */
export function parseScaleOptions(args: string[]): ScaleOptions {
  const { values } = parseArgs({
    args,
    options: {
      "server-runtime": { type: "string", default: ownRuntime() },
      events: { type: "string", default: "1e5,1e6,1e7" },
      shape: { type: "string", default: "batch" },
      keep: { type: "string" },
      parts: { type: "string", default: PARTS.join(",") },
      starts: { type: "string", default: "3" },
      seconds: { type: "string", default: "5" },
      "tail-mb": { type: "string", default: "56" },
      json: { type: "string" },
      dir: { type: "string" },
    },
  });
  const parts = values.parts.split(",");
  const unknownPart = parts.find((name) => !PARTS.some((part) => part === name));
  if (unknownPart !== undefined) {
    throw new Error(`unknown part ${unknownPart}; use ${PARTS.join(", ")}`);
  }
  return {
    serverRuntime: runtimeNamed(values["server-runtime"]),
    sizes: values.events.split(",").map((text) => positive("--events", text)),
    shape: shapeNamed(values.shape),
    keep: values.keep,
    parts: PARTS.filter((part) => parts.includes(part)),
    starts: positive("--starts", values.starts),
    replayMs: positive("--seconds", values.seconds) * 1000,
    tailBytes: positive("--tail-mb", values["tail-mb"]) * 1e6,
    jsonPath: values.json,
    parent: values.dir,
  };
}

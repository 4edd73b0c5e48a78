/**
 * Measures which costs grow with the log. Builds logs of several sizes, seals them and sends each
 * the same requests. The table shows the results side by side. See README.md in this directory.
 */
import { mkdir } from "node:fs/promises";
import process from "node:process";
import { askLog, PARTS } from "./scale/ask.ts";
import { buildLog, fillTail } from "./scale/build.ts";
import { type Figures, keptDeployment, readFacts } from "./scale/built_log.ts";
import { shapeNamed } from "./scale/history.ts";
import type { Deployment } from "./support/deployment.ts";
import {
  type BenchOptions,
  parseBenchOptions,
  positive,
  progress,
  runBench,
} from "./support/options.ts";
import { publish, rounded, type Row } from "./support/report.ts";
import { withDeployment } from "./support/with_deployment.ts";

const DEFAULT_ARGS = ["--events", "1e5,1e6,1e7"];
/** Nearly full. */
const TAIL_MB = "56";

/** Builds the log if it does not exist; keeps it if requested. */
async function measureSize(events: number, options: BenchOptions): Promise<Figures> {
  const { serverRuntime, own: { keep, shape = "batch", "tail-mb": tailMb = TAIL_MB } } = options;
  const measureIn = async (deployment: Deployment) => {
    const facts = await readFacts(deployment);
    const log = facts === null
      ? await buildLog(deployment, shapeNamed(shape), events)
      : { deployment, facts };
    await fillTail(log, positive("--tail-mb", tailMb) * 1e6);
    progress(`measuring the log of ${events} events`);
    return await askLog(log, options);
  };
  if (keep === undefined) return await withDeployment(options, measureIn);
  return await measureIn(await keptDeployment(keep, `${shape}-${events}`, serverRuntime));
}

/** Returns a row per figure with a column per log, and the last log's figure over the first's. */
function sideBySide(columns: { name: string; figures: Figures }[]): Row[] {
  const [first, last] = [columns[0]!.figures, columns.at(-1)!.figures];
  return Object.keys(first).map((row) => ({
    row,
    ...Object.fromEntries(columns.map(({ name, figures }) => [name, figures[row] ?? null])),
    "last/first": first[row] && last[row] ? rounded(last[row] / first[row], 2) : null,
  }));
}

await runBench(async () => {
  const args = [...DEFAULT_ARGS, ...process.argv.slice(2)];
  const options = parseBenchOptions(args, PARTS, ["shape", "keep", "tail-mb"]);
  const { sizes, own: { keep, shape = "batch" } } = options;
  if (keep !== undefined) await mkdir(keep, { recursive: true });
  const columns: { name: string; figures: Figures }[] = [];
  for (const events of sizes) {
    // The key is not a bare number, because objects list integer-like keys first.
    const name = `${events.toLocaleString("en")} events`;
    columns.push({ name, figures: await measureSize(events, options) });
  }
  const name = `scale, shape ${shape}`;
  await publish(name, options, sideBySide(columns));
});

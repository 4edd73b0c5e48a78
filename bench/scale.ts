/**
 * Measures which costs grow with the log. Builds logs of several sizes through the HTTP API, seals
 * them and sends each the same requests. The table shows the results side by side. See README.md
 * in this directory.
 */
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import process from "node:process";
import { askLog } from "./scale/ask.ts";
import { buildLog, fillTail } from "./scale/build.ts";
import { keptDeployment, readFacts } from "./scale/built_log.ts";
import { type Figures, sideBySide } from "./scale/figures.ts";
import { parseScaleOptions, type ScaleOptions } from "./scale/options.ts";
import type { Deployment } from "./support/deployment.ts";
import { probeDisk } from "./support/disk_probe.ts";
import { progress, runBench } from "./support/options.ts";
import { makeReport, publish } from "./support/report.ts";
import { withDeployment } from "./support/with_deployment.ts";

/** Builds the log if it does not exist; keeps it if requested. */
async function measureSize(events: number, options: ScaleOptions): Promise<Figures> {
  const { keep, shape, serverRuntime } = options;
  if (keep === undefined) {
    return await withDeployment(options, (deployment) => measureIn(deployment, events, options));
  }
  const deployment = await keptDeployment(keep, `${shape}-${events}`, serverRuntime);
  return await measureIn(deployment, events, options);
}

async function measureIn(
  deployment: Deployment,
  events: number,
  options: ScaleOptions,
): Promise<Figures> {
  const { shape, tailBytes } = options;
  const facts = await readFacts(deployment);
  const log = facts === null ? await buildLog(deployment, shape, events) : { deployment, facts };
  await fillTail(log, tailBytes);
  progress(`measuring the log of ${events} events`);
  return await askLog(log, options);
}

await runBench(async () => {
  const options = parseScaleOptions(process.argv.slice(2));
  const { serverRuntime, sizes, shape, jsonPath, keep, parent } = options;
  if (keep !== undefined) await mkdir(keep, { recursive: true });
  const disk = probeDisk(keep ?? parent ?? tmpdir());
  const columns: { name: string; figures: Figures }[] = [];
  for (const events of sizes) {
    // The key is not a bare number, because objects list integer-like keys first.
    const name = `${events.toLocaleString("en")} events`;
    columns.push({ name, figures: await measureSize(events, options) });
  }
  const name = `scale, shape ${shape}`;
  await publish(makeReport(name, serverRuntime, disk, sideBySide(columns)), jsonPath);
});

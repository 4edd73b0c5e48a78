/** All measurements of a built log: startup, requests over the socket, and `verify`. */
import { logBytes, sealedPart, tailBytes } from "../support/log_files.ts";
import { type BenchOptions, progress } from "../support/options.ts";
import { peakMemoryBytes } from "../support/process_stats.ts";
import { RawClient } from "../support/raw_client.ts";
import { megabytes, rounded } from "../support/report.ts";
import { type Deployment, withServer } from "../support/deployment.ts";
import { type BuiltLog, type Figures, writeFacts } from "./built_log.ts";
import {
  askDuplicates,
  askKeys,
  askNewBatches,
  askPages,
  askPreconditions,
  askReplay,
  askStreams,
} from "./questions.ts";
import { median } from "../../tools/support/median.ts";

export const PARTS = ["starts", "questions", "verify", "chain"] as const;

export async function askLog(log: BuiltLog, options: BenchOptions): Promise<Figures> {
  const { deployment } = log;
  const measurements: Record<string, () => Promise<Figures>> = {
    starts: () => measureStarts(deployment, options.starts),
    questions: () => askServer(log, options),
    verify: () => measureVerify("verify", ["verify"], deployment),
    chain: () => measureVerify("verify --chain", ["verify", "--chain"], deployment),
  };
  let figures: Figures = { ...await describeLog(log), ...log.facts.figures };
  for (const part of options.rows) figures = { ...figures, ...await measurements[part]!() };
  return figures;
}

async function describeLog({ deployment }: BuiltLog): Promise<Figures> {
  const { segments, events } = await sealedPart(deployment);
  const tail = tailBytes(deployment);
  return {
    "events sealed": events,
    "segments": segments,
    "tail MB": megabytes(tail),
    "sealed bytes/event": rounded((await logBytes(deployment) - tail) / events, 1),
  };
}

async function measureStarts(deployment: Deployment, starts: number): Promise<Figures> {
  progress("starts");
  const clean: number[] = [];
  const killed: number[] = [];
  for (let start = 0; start < starts; start++) {
    const stopped = await deployment.serve();
    clean.push(stopped.startMs);
    await stopped.kill();
    const afterKill = await deployment.serve();
    killed.push(afterKill.startMs);
    await afterKill.stop();
  }
  return {
    "start ms": rounded(median(clean), 0),
    "start after a kill ms": rounded(median(killed), 0),
  };
}

/** Measures each kind of request, and the server's memory. */
async function askServer(log: BuiltLog, { measureMs }: BenchOptions): Promise<Figures> {
  const { deployment, facts } = log;
  facts.askings++;
  await writeFacts(log);
  return await withServer(deployment, async ({ pid }) => {
    const client = await RawClient.connect(deployment.socketPath);
    const figures = {
      ...await askPages(client, facts),
      ...await askKeys(client, facts),
      ...await askNewBatches(client, facts),
      ...await askDuplicates(client, facts),
      ...await askPreconditions(client, facts),
      ...await askStreams(client, facts),
      ...await askReplay(client, measureMs),
    };
    client.close();
    await writeFacts(log);
    return { ...figures, "serve peak MB": megabytes(peakMemoryBytes(pid)) };
  });
}

/** Measures the command, which reports how many events it has checked. */
async function measureVerify(
  name: string,
  command: string[],
  deployment: Deployment,
): Promise<Figures> {
  progress(name);
  const { events } = await sealedPart(deployment);
  const { tookMs, peakBytes } = await deployment.run(command);
  return {
    [`${name} s`]: rounded(tookMs / 1000, 2),
    [`${name} sealed events/s`]: Math.round(events / tookMs * 1000),
    [`${name} peak MB`]: megabytes(peakBytes),
  };
}

/** All measurements of a built log: startup, requests over the socket, and `verify`. */
import type { Deployment } from "../support/deployment.ts";
import { logBytes, sealedPart, tailBytes } from "../support/log_files.ts";
import { type BenchOptions, progress } from "../support/options.ts";
import { peakMemoryBytes } from "../support/process_stats.ts";
import { RawClient } from "../support/raw_client.ts";
import { megabytes, rounded } from "../support/report.ts";
import { withDeployment, withServer } from "../support/with_deployment.ts";
import { type BuiltLog, type LogFacts, writeFacts } from "./built_log.ts";
import type { Figures } from "./figures.ts";
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
  const tail = await tailBytes(deployment);
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

async function askServer(log: BuiltLog, options: BenchOptions): Promise<Figures> {
  const { deployment, facts } = log;
  facts.askings++;
  await writeFacts(log);
  return await withEmptyLog(options, (emptyLog) =>
    withServer(deployment, async ({ pid }) => {
      const client = await RawClient.connect(deployment.socketPath);
      const figures = await askAllKinds({ client, emptyLog, facts }, options.measureMs);
      client.close();
      await writeFacts(log);
      return { ...figures, "serve peak MB": megabytes(peakMemoryBytes(pid)) };
    }));
}

interface Asked {
  client: RawClient;
  emptyLog: RawClient;
  facts: LogFacts;
}

/** Measures each kind of request. */
async function askAllKinds(
  { client, emptyLog, facts }: Asked,
  replayMs: number,
): Promise<Figures> {
  const kinds: [string, () => Promise<Figures>][] = [
    ["pages", () => askPages(client, facts)],
    ["keys", () => askKeys(client, facts)],
    ["new batches", () => askNewBatches(client, emptyLog, facts.askings)],
    ["duplicates", () => askDuplicates(client, facts)],
    ["preconditions", () => askPreconditions(client, facts)],
    ["streams", () => askStreams(client, facts)],
    ["replay", () => askReplay(client, replayMs)],
  ];
  let figures: Figures = {};
  for (const [name, askKind] of kinds) {
    progress(name);
    figures = { ...figures, ...await askKind() };
  }
  return figures;
}

async function withEmptyLog<T>(
  options: BenchOptions,
  use: (client: RawClient) => Promise<T>,
): Promise<T> {
  return await withDeployment(options, (deployment) =>
    withServer(deployment, async () => {
      const client = await RawClient.connect(deployment.socketPath);
      try {
        return await use(client);
      } finally {
        client.close();
      }
    }));
}

/** Measures the command, which reports how many events it has checked. */
async function measureVerify(
  name: string,
  command: string[],
  deployment: Deployment,
): Promise<Figures> {
  progress(name);
  const { events } = await sealedPart(deployment);
  const { tookMs, peakBytes } = await deployment.run(command, peakMemoryBytes);
  return {
    [`${name} s`]: rounded(tookMs / 1000, 2),
    [`${name} sealed events/s`]: Math.round(events / tookMs * 1000),
    [`${name} peak MB`]: megabytes(peakBytes),
  };
}

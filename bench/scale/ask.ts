/** All measurements of a built log: startup, requests over the socket, and `verify`. */
import { type Deployment, withServer } from "../support/deployment.ts";
import { logBytes, sealedPart, tailBytes } from "../support/log_files.ts";
import { type BenchOptions, progress } from "../support/options.ts";
import { memoryBytes, peakMemoryBytes } from "../support/process_stats.ts";
import { RawClient } from "../support/raw_client.ts";
import { megabytes, rounded } from "../support/report.ts";
import { median } from "../../tools/support/median.ts";
import type { BuiltLog } from "./build.ts";
import {
  askDuplicates,
  askFirstStreams,
  askKeys,
  askManyClients,
  askNewBatches,
  askPages,
  askPreconditions,
  askStreams,
  type Figures,
} from "./questions.ts";

export const PARTS = ["starts", "questions", "verify", "chain"] as const;

export async function askLog(log: BuiltLog, options: BenchOptions): Promise<Figures> {
  const { deployment } = log;
  const measurements: Record<string, () => Promise<Figures>> = {
    starts: () => measureStarts(deployment, options.rounds),
    questions: () => askServer(log, options),
    verify: () => measureVerify("verify", ["verify"], deployment),
    chain: () => measureVerify("verify --chain", ["verify", "--chain"], deployment),
  };
  let figures = await describeLog(deployment);
  for (const part of options.rows) {
    // Fabricated segments have no rows to verify.
    const isPossible = log.facts.shape !== "fabricated" || !["verify", "chain"].includes(part);
    if (isPossible) figures = { ...figures, ...await measurements[part]!() };
  }
  return figures;
}

async function describeLog(deployment: Deployment): Promise<Figures> {
  const { segments, events } = await sealedPart(deployment);
  const tail = tailBytes(deployment);
  return {
    "events sealed": events,
    "segments": segments,
    "tail MB": megabytes(tail),
    "sealed bytes/event": rounded((await logBytes(deployment) - tail) / events, 1),
    "index bytes/event": rounded(await logBytes(deployment, "index/") / events, 1),
  };
}

async function measureStarts(deployment: Deployment, rounds: number): Promise<Figures> {
  progress("starts");
  const tookMs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    tookMs.push(await withServer(deployment, ({ startMs }) => startMs));
  }
  return { "start ms": rounded(median(tookMs), 0) };
}

/** Measures each kind of request, and the server's memory. */
async function askServer(
  { deployment, facts }: BuiltLog,
  { measureMs }: BenchOptions,
): Promise<Figures> {
  return await withServer(deployment, async ({ pid }) => {
    const client = await RawClient.connect(deployment.socketPath);
    const startBytes = memoryBytes(pid);
    const figures = {
      ...await askNewBatches(client),
      ...await askDuplicates(client, facts),
      ...await askKeys(client, facts),
      ...await askPreconditions(client),
      ...await askFirstStreams(client),
      // Fabricated segments have no rows to read.
      ...facts.shape !== "fabricated" && {
        ...await askPages(client, facts),
        ...await askStreams(client, facts),
      },
      ...await askManyClients({ socketPath: deployment.socketPath, serverPid: pid, measureMs }),
    };
    client.close();
    return {
      ...figures,
      "serve after the start MB": megabytes(startBytes),
      "serve peak MB": megabytes(peakMemoryBytes(pid)),
    };
  });
}

/** Measures the command, which reports how many events it has checked. */
async function measureVerify(
  name: string,
  command: string[],
  deployment: Deployment,
): Promise<Figures> {
  progress(name);
  const { tookMs, peakBytes } = await deployment.run(command);
  return {
    [`${name} s`]: rounded(tookMs / 1000, 2),
    [`${name} peak MB`]: megabytes(peakBytes),
  };
}

/**
 * Measures an innocent client beside hostile ones: it appends and lists one stream, in turn. Peak
 * memory is that of the whole row, and memory after it that of some seconds without the hostile
 * clients. See README.md in this directory.
 */
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { Attack } from "./hostile/attack.ts";
import { ATTACK_NAMES, TOKEN } from "./hostile/attacks.ts";
import { appendLarge, batchOf, beInnocent, eventOf, exchange } from "./hostile/innocent.ts";
import { nothingPending } from "./support/log_files.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { memoryBytes, peakMemoryBytes } from "./support/process_stats.ts";
import { RawClient } from "./support/raw_client.ts";
import { megabytes, publishRows, rounded, type Row } from "./support/report.ts";
import { type Deployment, withDeployment, withServer } from "./support/deployment.ts";

const EVENTS = 4_000_000;
const BATCH_EVENTS = 10_000;
/** Events of a 100 KB batch. */
const LARGE_BATCH_EVENTS = 240;
/** Time after a row until its memory is measured. */
const SETTLE_MS = 30_000;
const SEALING_TIMEOUT_MS = 1_200_000;

/** Appends events of two streams and two kinds. */
async function build(deployment: Deployment, events: number): Promise<void> {
  progress(`building a log of ${events} events`);
  await withServer(deployment, async () => {
    const client = await RawClient.connect(deployment.socketPath);
    for (let done = 0; done < events; done += BATCH_EVENTS) {
      const pairs = Array.from({ length: Math.min(events - done, BATCH_EVENTS) }, (_, n) => {
        const name = n % 2 === 0 ? "even" : "odd";
        return eventOf(done + n, name, name, n);
      });
      while (await exchange(client, batchOf(pairs)) === 429);
    }
    client.close();
    await nothingPending(deployment, SEALING_TIMEOUT_MS);
  });
}

/** Puts the token into the configuration. */
async function setToken({ configPath }: Deployment): Promise<void> {
  const text = await readFile(configPath, "utf8");
  await writeFile(configPath, text.replace(/^token = .*$/m, `token = "${TOKEN}"`));
}

async function measureRow(
  row: string,
  deployment: Deployment,
  { measureMs, warmupMs }: BenchOptions,
): Promise<Row> {
  const { socketPath } = deployment;
  return await withServer(deployment, async ({ pid }) => {
    const client = await RawClient.connect(socketPath);
    const events = row.startsWith("bodies") ? LARGE_BATCH_EVENTS : 1;
    if (row.startsWith("unread")) await appendLarge(client);
    await beInnocent(client, events, warmupMs);
    const startBytes = memoryBytes(pid);
    const attack = await Attack.start({ attack: row, socketPath });
    const innocent = beInnocent(client, events, measureMs)
      .then((times) => ({ ...times, peakBytes: peakMemoryBytes(pid) }));
    const { latencies, appendLatencies, refusals, peakBytes } = await Promise.race([
      innocent,
      attack.failed,
    ])
      .finally(() => attack.end());
    await delay(Math.min(SETTLE_MS, 2 * measureMs));
    client.close();
    return {
      row,
      "requests": latencies.count,
      "p50 ms": rounded(latencies.quantileMs(0.5), 1),
      "p99 ms": rounded(latencies.quantileMs(0.99), 1),
      "slowest append ms": rounded(appendLatencies.slowestMs, 1),
      "429s": refusals,
      "before MB": megabytes(startBytes),
      "peak MB": megabytes(peakBytes),
      "after MB": megabytes(memoryBytes(pid)),
    };
  });
}

await runBench(async () => {
  const options = parseBenchOptions(ATTACK_NAMES);
  const { events = EVENTS } = options;
  await withDeployment(options, async (deployment) => {
    await setToken(deployment);
    await build(deployment, events);
    await publishRows(`hostile, ${events} events`, options, async (row) => {
      if (!row.startsWith("unread")) return await measureRow(row, deployment, options);
      // Memory of clients that read nothing is measured on a small log, which others don't share.
      return await withDeployment(options, async (small) => {
        await setToken(small);
        return await measureRow(row, small, options);
      });
    });
  });
});

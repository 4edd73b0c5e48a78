/**
 * Measures the peak memory of `serve` under each kind of load and under all kinds at once. Clients
 * never pause. See README.md in this directory.
 */
import { Attack } from "./hostile/attack.ts";
import { ATTACK_NAMES } from "./hostile/attacks.ts";
import { appendLarge } from "./hostile/innocent.ts";
import { KINDS, loadOf } from "./memory/loads.ts";
import { type BuiltLog, withBuiltLog } from "./scale/build.ts";
import { Followers } from "./support/followers.ts";
import { runLoad } from "./support/load.ts";
import { type BenchOptions, parseBenchOptions, runBench } from "./support/options.ts";
import { runPatientLoad } from "./support/patient_load.ts";
import { memoryBytes, peakMemoryBytes } from "./support/process_stats.ts";
import { RawClient } from "./support/raw_client.ts";
import { megabytes, publishRows, rounded, type Row } from "./support/report.ts";
import { withServer } from "./support/deployment.ts";

/** All kinds of load at once. */
const ALL = "all";
/** And clients that read nothing. */
const HOSTILE = "hostile";
const HOSTILE_CLIENTS = ATTACK_NAMES.filter((name) => name.startsWith("unread"));
const DEFAULTS = { seconds: "40", events: "1e6" };

async function measureRow(
  row: string,
  { deployment, facts }: BuiltLog,
  { measureMs }: BenchOptions,
): Promise<Row> {
  const { socketPath } = deployment;
  return await withServer(deployment, async ({ pid }) => {
    const startBytes = memoryBytes(pid);
    const kinds = KINDS.includes(row) ? [row] : KINDS;
    const { workloads, followFrom } = loadOf(`${row}-${Date.now()}`, kinds, facts);
    const following = followFrom.map((after) => followUntilFailure(socketPath, after));
    const attacks = row === HOSTILE ? await startHostile(socketPath) : [];
    const options = { socketPath, workloads, serverPid: pid, measureMs };
    // One kind of load alone is never refused.
    const loaded = KINDS.includes(row)
      ? runLoad(options).then((load) => ({ ...load, refused: 0, closed: 0 }))
      : runPatientLoad(options);
    try {
      const load = await Promise.race([
        loaded,
        ...following,
        ...attacks.map(({ failed }) => failed),
      ]);
      return {
        row,
        "clients": workloads.length + followFrom.length,
        "requests/s": rounded(load.latencies.count / load.seconds, 1),
        "refused": load.refused + load.closed,
        "appended events/s": Math.round(load.events / load.seconds),
        "after start MB": megabytes(startBytes),
        "at the end MB": megabytes(memoryBytes(pid)),
        "peak MB": megabytes(peakMemoryBytes(pid)),
      };
    } finally {
      for (const attack of attacks) await attack.end();
    }
  });
}

async function startHostile(socketPath: string): Promise<Attack[]> {
  const client = await RawClient.connect(socketPath);
  await appendLarge(client);
  client.close();
  return await Promise.all(HOSTILE_CLIENTS.map((attack) => Attack.start({ attack, socketPath })));
}

/** Follows until a failure. The server closes the response on shutdown, which is not a failure. */
async function followUntilFailure(socketPath: string, after: string): Promise<never> {
  const followers = await Followers.open({ socketPath, count: 1, after });
  return await followers.failed;
}

await runBench(async () => {
  const options = parseBenchOptions([...KINDS, ALL, HOSTILE], DEFAULTS, ["shape", "keep"]);
  const { events, own: { shape = "batch" } } = options;
  await withBuiltLog(options, events!, async (log) => {
    const name = `memory, ${events} events, ${shape}`;
    await publishRows(name, options, (row) => measureRow(row, log, options));
  });
});

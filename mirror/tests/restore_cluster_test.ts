/** `restore` from three servers that are killed and suspended while it runs. */
import assert from "node:assert/strict";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { withServing } from "../../tests/support/deployment.ts";
import { describeExit, isRunning, signalChild, type Spawned } from "../../tools/support/program.ts";
import { randomInteger, randomItem, seededRandom, testSeed } from "../../tools/support/random.ts";
import {
  appendPayloads,
  end,
  headIn,
  MIRROR_TIMEOUT_MS,
  runMirror,
  startMirror,
} from "./support/mirrored.ts";
import { addReplicatedStream, untilStored } from "./support/nats_cluster.ts";
import { type NatsServer, NEEDS_NATS, withCluster } from "./support/nats_server.ts";
import { pause } from "./support/nats_stream.ts";

const seed = testSeed();
const EVENTS = Number(process.env.MIRROR_TEST_EVENTS ?? 20_000);
const ROUNDS = Number(process.env.MIRROR_TEST_ROUNDS ?? 1);
const BATCH_EVENTS = 500;
const PAD = "x".repeat(270);
/** Per round, the log grows by 1 / ROUND_SHARE. */
const ROUND_SHARE = 10;
const HITS_MAX = 3;
/** Longer than an election, so that the remaining servers elect a leader in some rounds. */
const DOWN_MS_MAX = 12_000;
/**
 * Time limit for a restore once the stream contains all events again. Each session may get a
 * consumer on a server whose replica is stalled, and noticing that takes up to 10 s.
 */
const RESTORE_MS_MAX = 120_000;

/** Kills or suspends random servers for a random time. @returns what it did. */
async function hit(servers: readonly NatsServer[], random: () => number): Promise<string> {
  const isAll = random() < 0.3;
  const first = randomItem(random, servers);
  const chosen = servers.filter((server) => isAll || server === first || random() < 0.3);
  const frozen = new Set(chosen.filter(() => random() < 0.5));
  const downMs = randomInteger(random, 0, DOWN_MS_MAX);
  await Promise.all(chosen.map(async (server) => {
    if (frozen.has(server)) server.freeze();
    else await server.stop("SIGKILL");
  }));
  await delay(downMs);
  await Promise.all(chosen.map(async (server) => {
    if (frozen.has(server)) server.thaw();
    else await server.start();
  }));
  const names = chosen.map((server) =>
    `${frozen.has(server) ? "froze" : "killed"} n${servers.indexOf(server)}`
  );
  return `${names.join(", ")} for ${downMs} ms`;
}

async function hitRepeatedly(
  servers: readonly NatsServer[],
  random: () => number,
): Promise<string> {
  const hits: string[] = [];
  for (let left = randomInteger(random, 1, HITS_MAX); left > 0; left--) {
    hits.push(await hit(servers, random));
  }
  return hits.join("; ");
}

/** Waits until a restore has written this many bytes, or has ended. */
async function untilWritten(running: Spawned, dir: string, bytes: number): Promise<void> {
  const tail = join(dir, "data", "log", "tail.ndjson");
  const isBelow = () => stat(tail).then(({ size }) => size < bytes, () => true);
  while (isRunning(running) && await isBelow()) await pause();
}

test(`restore ends soon after a cluster is back (SEED=${seed})`, NEEDS_NATS, (context) => {
  const random = seededRandom(seed);
  return withServing((served) =>
    withCluster(async (servers) => {
      const nats = servers.map(({ url }) => url).join(",");
      const started: Spawned[] = [];
      const start = (args: string[]) => {
        const running = startMirror([...args, "--nats", nats]);
        started.push(running);
        return running;
      };
      let events = 0;
      let lastEventId = "";
      const append = async (count: number) => {
        for (const target = events + count; events < target; events += BATCH_EVENTS) {
          const payloads = Array.from({ length: BATCH_EVENTS }, (_, n) => ({ n, pad: PAD }));
          const receipt = await appendPayloads({ served }, `b${events}`, payloads);
          lastEventId = receipt.last_event_id;
        }
      };
      const round = async (dirs: string[]) => {
        const before = start(["restore", dirs[0]!]);
        await untilWritten(before, dirs[0]!, random() * events * PAD.length);
        const [hits] = await Promise.all([
          hitRepeatedly(servers, random),
          append(EVENTS / ROUND_SHARE),
        ]);
        // The replicas of restarted servers are still catching up.
        await untilStored(servers, events, pusher);
        const backMs = performance.now();
        const restoring = [before, start(["restore", dirs[1]!])];
        const timers = restoring.map(({ child }) =>
          setTimeout(() => signalChild(child, "SIGKILL"), RESTORE_MS_MAX)
        );
        const exits = await Promise.all(restoring.map(({ exited }) => exited));
        timers.forEach(clearTimeout);
        const story = `${hits}; restored ${Math.round(performance.now() - backMs)} ms later: ` +
          exits.map(describeExit).join("; ");
        assert.deepEqual(exits.map(({ code }) => code), [0, 0], story);
        assert.match(exits[1]!.stderr, new RegExp(`ends with event ${lastEventId}`), story);
        context.diagnostic(story);
      };
      await addReplicatedStream(servers);
      const pusher = start(["push", "--socket", served.socketPath]);
      try {
        await append(EVENTS);
        await untilStored(servers, events, pusher);
        for (let number = 0; number < ROUNDS; number++) {
          const dirs = ["before", "after"].map((name) => join(served.folder, `${name}${number}`));
          await round(dirs);
          await Promise.all(dirs.map((dir) => rm(dir, { recursive: true })));
        }
      } finally {
        await Promise.all(started.map((running) => end(running, "SIGKILL")));
      }
      await served.stop();
      const head = headIn((await served.run(["seal"])).stderr);
      await runMirror(["restore", "--nats", nats, "--head", head, join(served.folder, "copy")]);
    }), { timeoutMs: MIRROR_TIMEOUT_MS });
});

/**
 * A stream with three replicas on three servers. Even if servers and pushers are killed, the stream
 * contains each event once, in order, and a log restored from it has the same chain head.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { type Deployment, withServing } from "../../tests/support/deployment.ts";
import { randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";
import {
  appendPayloads,
  end,
  headIn,
  MIRROR_TIMEOUT_MS,
  runMirror,
  startMirror,
} from "./support/mirrored.ts";
import { addReplicatedStream, streamInfo, untilStored } from "./support/nats_cluster.ts";
import { type NatsServer, NEEDS_NATS, withCluster } from "./support/nats_server.ts";
import { pause } from "./support/nats_stream.ts";

const seed = testSeed();
const EVENTS = Number(process.env.MIRROR_TEST_EVENTS ?? 20_000);
const BATCH_EVENTS = 500;
/** Number of times to kill the leader and the pusher. A NATS election can take 10 s or more. */
const KILLS = Number(process.env.MIRROR_TEST_KILLS ?? 1);
/**
 * Maximum number of events by which ingest may run ahead of the stream. The limit keeps ingest
 * running until the last kill.
 */
const AHEAD_MAX = 5000;

async function ingest(served: Deployment, servers: readonly NatsServer[]): Promise<void> {
  for (let events = 0; events < EVENTS; events += BATCH_EVENTS) {
    const payloads = Array.from({ length: BATCH_EVENTS }, (_, n) => ({ n: events + n }));
    await appendPayloads({ served }, `b${events}`, payloads);
    if (events < AHEAD_MAX) continue;
    while ((await streamInfo(servers)).state.last_seq < events - AHEAD_MAX) await pause();
  }
}

test(`push fills a replicated stream whose servers are killed (SEED=${seed})`, NEEDS_NATS, () => {
  const random = seededRandom(seed);
  return withServing((served) =>
    withCluster(async (servers) => {
      const nats = servers.map(({ url }) => url).join(",");
      await addReplicatedStream(servers);
      const push = () => startMirror(["push", "--socket", served.socketPath, "--nats", nats]);
      let pusher = push();
      const ingesting = ingest(served, servers);
      const kills = [
        ...Array<string>(KILLS).fill("leader"),
        ...Array<string>(KILLS).fill("pusher"),
        "all",
      ].sort(() => random() - 0.5);
      for (const [number, killed] of kills.entries()) {
        const at = Math.floor(EVENTS * (number + random()) / kills.length);
        await untilStored(servers, Math.max(1, at - randomInteger(random, 0, 100)), pusher);
        if (killed === "pusher") {
          await end(pusher, "SIGKILL");
          pusher = push();
        } else {
          const leader = (await streamInfo(servers)).cluster?.leader;
          const dying = servers.filter((_, place) => killed === "all" || leader === `n${place}`);
          await Promise.all(dying.map((server) => server.stop("SIGKILL")));
          if (killed === "leader") await streamInfo(servers);
          await Promise.all(dying.map((server) => server.start()));
        }
      }
      await ingesting;
      await untilStored(servers, EVENTS, pusher);
      await end(pusher, "SIGTERM");
      assert.equal((await streamInfo(servers)).state.messages, EVENTS);
      await served.stop();
      const { stderr } = await served.run(["seal"]);
      const head = headIn(stderr);
      const restoring = ["restore", "--nats", nats, "--head", head, join(served.folder, "copy")];
      const restored = await runMirror(restoring);
      assert.match(restored.stderr, new RegExp(`head ${head}\n$`));
    }), { timeoutMs: MIRROR_TIMEOUT_MS });
});

/** `examples/merge.ts`: one consumer of three services, each with its own pusher and stream. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { CommittedEvent } from "../../mod.ts";
import { type Deployment, withServing } from "../../tests/support/deployment.ts";
import { spawnScript } from "../../tools/support/program.ts";
import { appendPayloads, runMirror } from "./support/mirrored.ts";
import { NEEDS_NATS, withNats } from "./support/nats_server.ts";

const MERGE = fileURLToPath(new URL("../examples/merge.ts", import.meta.url));
const BATCHES = 20;

/** Starts `count` services and passes them to `use`. */
function withServices(
  count: number,
  use: (services: Deployment[]) => Promise<void>,
  services: Deployment[] = [],
): Promise<void> {
  if (services.length === count) return use(services);
  return withServing((served) => withServices(count, use, [...services, served]));
}

test(
  "merge.ts prints each event from three logs once, in id order",
  NEEDS_NATS,
  () =>
    withServices(3, (services) =>
      withNats(async (nats) => {
        for (let batch = 0; batch < BATCHES; batch++) {
          const number = batch % services.length;
          const served = services[number]!;
          await appendPayloads({ served }, `b${batch}`, [batch, batch + 0.5], {
            source: `shop${number}`,
          });
        }
        const streams = services.map((_, number) => `ground-${number}`);
        await Promise.all(services.map(({ socketPath }, number) => {
          const to = ["--nats", nats.url, "--stream", streams[number]!, "--once"];
          return runMirror(["push", "--socket", socketPath, ...to]);
        }));
        const args = ["--streams", streams.join(","), "--nats", nats.url, "--once"];
        const { code, stdout, stderr } = await spawnScript(MERGE, args, {
          permissions: ["--allow-all"],
        }).exited;
        assert.equal(code, 0, stderr);
        const events = stdout.trimEnd().split("\n").map((line): CommittedEvent => {
          return JSON.parse(line.slice(line.indexOf("{")));
        });
        const ids = events.map(({ event_id }) => event_id);
        assert.deepEqual(ids, [...ids].sort());
        const expected = Array.from({ length: BATCHES }, (_, batch) => [batch, batch + 0.5]).flat();
        assert.deepEqual(events.map(({ payload }) => payload), expected);
        assert.match(stdout, /^ground-0 1 \{/);
      })),
);

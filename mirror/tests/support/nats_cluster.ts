/** Requests to a cluster whose servers may be down, or which may have no leader. */
import assert from "node:assert/strict";
import { jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Spawned } from "../../../tools/support/program.ts";
import { hasAtomicBatches } from "../../nats/stream.ts";
import type { NatsServer } from "./nats_server.ts";
import { pause, STREAM } from "./nats_stream.ts";

const CONNECT_TIMEOUT_MS = 2000;

/** Retries a request on each server in turn until one succeeds, which requires a leader. */
async function onCluster<Result>(
  servers: readonly NatsServer[],
  ask: (manager: Awaited<ReturnType<typeof jetstreamManager>>) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 0;; attempt++) {
    const { url } = servers[attempt % servers.length]!;
    try {
      const options = { servers: url, reconnect: false, timeout: CONNECT_TIMEOUT_MS };
      const connection = await connect(options);
      try {
        return await ask(await jetstreamManager(connection, { checkAPI: false }));
      } finally {
        await connection.close();
      }
    } catch {
      await pause();
    }
  }
}

export function streamInfo(servers: readonly NatsServer[]): Promise<StreamInfo> {
  return onCluster(servers, ({ streams }) => streams.info(STREAM));
}

/** Creates the stream with a replica on every server. */
export async function addReplicatedStream(servers: readonly NatsServer[]): Promise<void> {
  const add = { name: STREAM, subjects: [`${STREAM}.*.*`], num_replicas: servers.length };
  await onCluster(servers, async (manager) => {
    await manager.streams.add({ ...add, allow_atomic: await hasAtomicBatches(manager) });
  });
}

/** Waits until the stream's last sequence is at least `sequence`. */
export async function untilStored(
  servers: readonly NatsServer[],
  sequence: number,
  pusher: Spawned,
): Promise<void> {
  let isGone = false;
  pusher.exited.then(() => isGone = true);
  while ((await streamInfo(servers)).state.last_seq < sequence) {
    assert.ok(!isGone, pusher.output.stderr);
    await pause();
  }
}

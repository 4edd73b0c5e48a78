/** `nats_bridge` between a served deployment and a real `nats-server`. */
import { test } from "node:test";
import { EventLogClient, type Receipt } from "../../../mod.ts";
import { type NatsServer, NEEDS_NATS, withNats } from "./nats_server.ts";
import { signalChild, type Spawned } from "../../../tools/support/program.ts";
import { startExample } from "./run_script.ts";
import { type Deployment, withServing } from "../../support/deployment.ts";

export interface Bridged {
  served: Deployment;
  nats: NatsServer;
}

/** A test with both, without a bridge. @param natsConfig Lines of the configuration of NATS. */
export function testWithNats(
  name: string,
  use: (bridged: Bridged) => Promise<void>,
  natsConfig = "",
): void {
  test(name, NEEDS_NATS, async () => {
    await withServing((served) => withNats((nats) => use({ served, nats }), natsConfig));
  });
}

/** Starts a bridge with permissions for both ends only. */
export function startBridge({ served, nats }: Bridged, url = nats.url): Spawned {
  const { socketPath } = served;
  return startExample("nats_bridge", ["--socket", socketPath, "--nats", url], [
    `--allow-net=${new URL(nats.url).host},unix:${socketPath}`,
    `--allow-read=${socketPath}`,
    `--allow-write=${socketPath}`,
  ]);
}

/** Stops a bridge. @returns its exit code. */
export async function endBridge(
  { child, exited }: Spawned,
  signal: "SIGTERM" | "SIGINT" | "SIGKILL",
): Promise<number | null> {
  signalChild(child, signal);
  return (await exited).code;
}

/** Appends a batch of events with these payloads. */
export function appendPayloads(
  { served }: Bridged,
  batchId: string,
  payloads: unknown[],
  { source = "shop", stream = "orders" } = {},
): Promise<Receipt> {
  const events = payloads.map((payload, index) => ({
    stream,
    record_key: `${batchId}/${index}`,
    kind: "upserted",
    payload,
  }));
  return new EventLogClient(served.serving.fetch).append({ source, batchId, events });
}

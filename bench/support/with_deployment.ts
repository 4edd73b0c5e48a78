/** Runs functions with a temporary deployment, and appends to logs. */
import type { RuntimeName } from "../../tools/support/runtimes.ts";
import { Deployment, ROTATE_NEVER_BYTES, type Server } from "./deployment.ts";
import { ask } from "./exchange.ts";
import { RawClient } from "./raw_client.ts";
import { keyedBatch } from "./requests.ts";

export interface DeploymentOptions {
  serverRuntime: RuntimeName;
  parent: string | undefined;
  /** Default: this one. */
  checkout?: string;
}

/** Runs `use` with a new deployment, then removes it. */
export async function withDeployment<T>(
  { serverRuntime, parent, checkout }: DeploymentOptions,
  use: (deployment: Deployment) => Promise<T> | T,
): Promise<T> {
  const deployment = await Deployment.create(serverRuntime, parent, checkout);
  const using = async () => await use(deployment);
  return await using().finally(() => deployment.remove());
}

/**
 * Serves the deployment during `use`, then stops the server cleanly, or kills it after a failure.
 * @param rotateBytes size at which the server seals its tail; see `Deployment.serve()`.
 */
export async function withServer<T>(
  deployment: Deployment,
  use: (server: Server) => Promise<T>,
  rotateBytes?: number,
  v8Flags?: string[],
): Promise<T> {
  const server = await deployment.serve(rotateBytes, v8Flags);
  let result: T;
  try {
    result = await use(server);
  } catch (error) {
    await server.kill();
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${reason}; server output: ${server.complaint.trim()}`, { cause: error });
  }
  await server.stop();
  return result;
}

export interface KeyedBatches {
  /** The number of the first batch; default 0. */
  firstBatch?: number;
  batches: number;
  batchEvents: number;
}

/** Appends reproducible batches whose events have distinct keys, and keeps them in the tail. */
export async function appendKeyed(
  deployment: Deployment,
  { firstBatch = 0, batches, batchEvents }: KeyedBatches,
): Promise<void> {
  await withServer(deployment, async () => {
    const client = await RawClient.connect(deployment.socketPath);
    for (let number = firstBatch; number < firstBatch + batches; number++) {
      const request = keyedBatch(number, batchEvents);
      await ask(client, { request, expected: '"status":"committed"' });
    }
    client.close();
  }, ROTATE_NEVER_BYTES);
}

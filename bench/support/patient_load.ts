/** A load whose requests may be refused, with status 429 or by closing the connection. */
import { setTimeout as delay } from "node:timers/promises";
import { type Exchange, type LoadOptions, type LoadResult, runLoops } from "./load.ts";
import { RawClient } from "./raw_client.ts";

const RETRY_MS = 5;

export interface PatientResult extends LoadResult {
  /** Responses with status 429. */
  refused: number;
  /** Connections that the server has closed. */
  closed: number;
}

/** Like `runLoad()`, but clients continue with the next request when one is refused. */
export async function runPatientLoad(options: LoadOptions): Promise<PatientResult> {
  const { socketPath, workloads } = options;
  const clients = await Promise.all(workloads.map(() => connect(socketPath)));
  let [refused, closed] = [0, 0];
  const exchanges = workloads.map(({ next, accept }, index): Exchange => (done, failed) => {
    clients[index]!.send(next(), (response) => {
      try {
        const isRefused = response.status === 429;
        if (isRefused) refused += 1;
        done(isRefused ? 0 : accept(response));
      } catch (error) {
        failed(error);
      }
    }, () => {
      clients[index]!.close();
      connect(socketPath).then((client) => {
        clients[index] = client;
        closed += 1;
        done(0);
      }).catch(failed);
    });
  });
  try {
    return { ...await runLoops(exchanges, options), refused, closed };
  } finally {
    for (const client of clients) client.close();
  }
}

/** Retries while the backlog of connections is full. */
async function connect(socketPath: string): Promise<RawClient> {
  for (;; await delay(RETRY_MS)) {
    try {
      return await RawClient.connect(socketPath);
    } catch (error) {
      if ((error as { code?: string }).code !== "EAGAIN") throw error;
    }
  }
}

/** A client whose requests may be refused, with status 429 or by closing the connection. */
import { setTimeout as delay } from "node:timers/promises";
import type { Exchange, Workload } from "../support/load.ts";
import { RawClient } from "../support/raw_client.ts";

const RETRY_MS = 5;

export class PatientClient {
  refusals = 0;
  readonly #socketPath: string;
  readonly #workload: Workload;
  #client: RawClient;

  private constructor(socketPath: string, workload: Workload, client: RawClient) {
    this.#socketPath = socketPath;
    this.#workload = workload;
    this.#client = client;
  }

  static async connect(socketPath: string, workload: Workload): Promise<PatientClient> {
    return new PatientClient(socketPath, workload, await connect(socketPath));
  }

  readonly exchange: Exchange = (done, failed) => {
    const { next, accept } = this.#workload;
    const refused = () => {
      this.refusals += 1;
      done(0);
    };
    this.#client.send(next(), (response) => {
      try {
        if (response.status === 429) refused();
        else done(accept(response));
      } catch (error) {
        failed(error);
      }
    }, () => {
      this.close();
      connect(this.#socketPath).then((client) => {
        this.#client = client;
        refused();
      }).catch(failed);
    });
  };

  close(): void {
    this.#client.close();
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

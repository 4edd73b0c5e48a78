/** Runs hostile clients on a thread. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Target } from "./attacks.ts";

export class Attack {
  readonly #worker: Worker;
  /** Rejects when the thread fails. */
  readonly failed: Promise<never>;

  private constructor(worker: Worker) {
    this.#worker = worker;
    this.failed = new Promise((_, reject) => worker.once("error", reject));
    this.failed.catch(() => {});
  }

  /** Resolves when the clients have begun. */
  static async start(workerData: Target): Promise<Attack> {
    const worker = new Worker(new URL("./attacks.ts", import.meta.url), { workerData });
    const attack = new Attack(worker);
    await Promise.race([once(worker, "message"), attack.failed]);
    return attack;
  }

  /** Closes the connections of the clients, also after a failure. */
  async end(): Promise<void> {
    this.#worker.postMessage("end");
    await Promise.race([once(this.#worker, "message"), this.failed]).catch(() => {});
    await this.#worker.terminate();
  }
}

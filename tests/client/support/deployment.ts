/** A served deployment of the test's own, which can be stopped and started. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { runCli, type Serving, startServe, withFolder } from "../../../tools/support/program.ts";

export class Deployment {
  /** The test's own folder; the deployment lies in `demo` there. */
  readonly folder: string;
  readonly socketPath: string;
  #serving: Serving | null = null;

  constructor(folder: string) {
    this.folder = folder;
    this.socketPath = join(folder, "demo", "data", "ground.sock");
  }

  async init(): Promise<void> {
    const { code, stderr } = await runCli(["init", join(this.folder, "demo")]);
    assert.equal(code, 0, stderr);
  }

  /** Serves; returns once requests are answered. */
  async start(): Promise<void> {
    this.#serving = await startServe(join(this.folder, "demo"));
  }

  /** Ends the service, if there is one. SIGKILL stands for a crash. */
  async stop(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const serving = this.#serving;
    this.#serving = null;
    await serving?.stop(signal);
  }
}

/** Runs `use` with a deployment that serves. */
export async function withDeployment(
  use: (deployment: Deployment) => Promise<void>,
): Promise<void> {
  await withFolder(async (folder) => {
    const deployment = new Deployment(folder);
    await deployment.init();
    await deployment.start();
    try {
      await use(deployment);
    } finally {
      await deployment.stop("SIGKILL");
    }
  });
}

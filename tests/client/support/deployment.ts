/** A temporary deployment whose service can be stopped and started. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { runCli, type Serving, startServe, withFolder } from "../../support/cli.ts";

export class Deployment {
  /** The temporary folder; the deployment is in its subfolder `demo`. */
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

  /** Starts the service; resolves when it accepts requests. */
  async start(): Promise<void> {
    this.#serving = await startServe(join(this.folder, "demo"));
  }

  /** Ends the service, if it runs. SIGKILL simulates a crash. */
  async stop(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const serving = this.#serving;
    this.#serving = null;
    await serving?.stop(signal);
  }
}

/** Runs `use` with a running deployment. */
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

/** A deployment of the test's own, and the process that serves it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { init } from "../../src/commands/init.ts";
import {
  type CliExit,
  type CliOptions,
  isRunning,
  runCli,
  type ServeOptions,
  type Serving,
  startServe,
  withFolder,
} from "../../tools/support/program.ts";

/** What `verify` reports of a log in order. */
export interface VerifiedLog {
  events_checked: number;
  orphans: string[];
  remnants: string[];
}

export class Deployment {
  /** The test's own folder, which the deployment lies in. */
  readonly folder: string;
  readonly dir: string;
  readonly configPath: string;
  readonly logDir: string;
  readonly socketPath: string;
  #serving: Serving | null = null;

  /** @param dir the folder of a deployment that has been initialized. */
  constructor(folder: string, dir: string) {
    this.folder = folder;
    this.dir = dir;
    this.configPath = join(dir, "service.toml");
    this.logDir = join(dir, "data", "log");
    this.socketPath = join(dir, "data", "ground.sock");
  }

  /** The process that was started last. */
  get serving(): Serving {
    assert.ok(this.#serving !== null, "the deployment was served");
    return this.#serving;
  }

  /** Serves; returns once requests are answered. */
  async start(options: ServeOptions = {}): Promise<Serving> {
    return this.#serving = await startServe(this.dir, options);
  }

  /** Ends the service; unless it is killed, that must be a clean shutdown. */
  async stop(signal: "SIGTERM" | "SIGINT" | "SIGKILL" = "SIGTERM"): Promise<CliExit> {
    const exit = await this.serving.stop(signal);
    if (signal !== "SIGKILL") assert.equal(exit.code, 0, exit.stderr);
    return exit;
  }

  /** Runs another command on the deployment to its end. */
  run(command: string[], options: CliOptions = {}): Promise<CliExit> {
    return runCli([...command, "--config", this.configPath], options);
  }

  /** Asserts that `verify --chain` finds nothing wrong. */
  async verify(options: CliOptions = {}): Promise<VerifiedLog> {
    const { code, stdout, stderr } = await this.run(["verify", "--chain"], options);
    assert.equal(code, 0, stdout + stderr);
    return JSON.parse(stdout);
  }

  /** Leaves no process behind. */
  async dispose(): Promise<void> {
    if (this.#serving !== null && isRunning(this.#serving)) await this.#serving.stop("SIGKILL");
  }
}

/** Runs `use` with a new deployment that nobody serves yet. */
export function withDeployment<T>(use: (deployment: Deployment) => Promise<T>): Promise<T> {
  return withFolder(async (folder) => {
    const dir = join(folder, "demo");
    await init(dir, () => {});
    const deployment = new Deployment(folder, dir);
    try {
      return await use(deployment);
    } finally {
      await deployment.dispose();
    }
  });
}

/** Runs `use` with a new deployment that is served. */
export function withServing<T>(
  use: (deployment: Deployment) => Promise<T>,
  options: ServeOptions = {},
): Promise<T> {
  return withDeployment(async (deployment) => {
    await deployment.start(options);
    return await use(deployment);
  });
}

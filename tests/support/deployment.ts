/** A deployment for one test, and the process that serves it. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { init } from "../../src/commands/init.ts";
import type { Receipt } from "../../src/event/types.ts";
import type { VerifyReport } from "../../src/log/verify/verify.ts";
import { allEvents, batchWith, ingest } from "../contract/support/api.ts";
import type { HttpReply } from "./http_client.ts";
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

export class Deployment {
  /** The test's own directory, which contains the deployment. */
  readonly folder: string;
  readonly dir: string;
  readonly configPath: string;
  readonly logDir: string;
  readonly socketPath: string;
  /** Receipts of the batches ingested through this object. */
  readonly receipts: Receipt[] = [];
  #serving: Serving | null = null;

  /** @param dir directory of an initialized deployment. */
  constructor(folder: string, dir: string) {
    this.folder = folder;
    this.dir = dir;
    this.configPath = join(dir, "service.toml");
    this.logDir = join(dir, "data", "log");
    this.socketPath = join(dir, "data", "ground.sock");
  }

  /** The most recently started process. */
  get serving(): Serving {
    assert.ok(this.#serving !== null, "the deployment is being served");
    return this.#serving;
  }

  /** Starts `serve`, and resolves once it responds. */
  async start(options: ServeOptions = {}): Promise<Serving> {
    return this.#serving = await startServe(this.dir, options);
  }

  /** Stops the service. The shutdown must be clean unless the service is killed. */
  async stop(signal: Parameters<Serving["stop"]>[0] = "SIGTERM"): Promise<CliExit> {
    const exit = await this.serving.stop(signal);
    if (signal !== "SIGKILL") assert.equal(exit.code, 0, exit.stderr);
    return exit;
  }

  /** Runs another command on the deployment and waits until it exits. */
  run(command: string[], options: CliOptions = {}): Promise<CliExit> {
    return runCli([...command, "--config", this.configPath], options);
  }

  /** Stops the service and seals its log. */
  async seal(): Promise<void> {
    await this.stop();
    const { code, stderr } = await this.run(["seal"]);
    assert.equal(code, 0, stderr);
  }

  /** Asserts that `verify --chain` finds no violation. */
  async verify(options: CliOptions = {}): Promise<VerifyReport> {
    const { code, stdout, stderr } = await this.run(["verify", "--chain"], options);
    assert.equal(code, 0, stdout + stderr);
    return JSON.parse(stdout);
  }

  /** Replaces a string in the configuration. */
  async configure(from: string, to: string): Promise<void> {
    const text = await readFile(this.configPath, "utf8");
    assert.ok(text.includes(from), from);
    await writeFile(this.configPath, text.replace(from, to));
  }

  /** Ingests a batch with `members` overridden or added. @returns the reply. */
  async ingest(batchId: string, members: object = {}): Promise<HttpReply> {
    const reply = await ingest(this.socketPath, batchWith({ batch_id: batchId, ...members }));
    if (reply.status === 200) this.receipts.push(reply.json());
    return reply;
  }

  /** Ingests a batch of one event, which must be accepted. */
  async append(batchId: string): Promise<void> {
    const reply = await this.ingest(batchId);
    assert.equal(reply.status, 200, reply.text());
  }

  /** Asserts that a replay returns exactly the batches acknowledged through this object. */
  async assertShows(): Promise<void> {
    const batches = Map.groupBy(await allEvents(this.socketPath), ({ batch_id }) => batch_id);
    const shown = [...batches.values()].map((batch) => [
      batch[0]!.event_id,
      batch.at(-1)!.event_id,
      batch.length,
    ]);
    const acknowledged = this.receipts.map(({ first_event_id, last_event_id, events }) => [
      first_event_id,
      last_event_id,
      events,
    ]);
    assert.deepEqual(shown, acknowledged.sort(([a], [b]) => a! < b! ? -1 : 1));
  }

  /** Asserts that a restarted service returns all acknowledged batches, and that it continues. */
  async assertContinues(): Promise<void> {
    await this.start();
    await this.assertShows();
    await this.append("after the restart");
    await this.assertShows();
    await this.stop();
    await this.verify();
  }

  /** Kills the process if it is running. */
  async dispose(): Promise<void> {
    if (this.#serving !== null && isRunning(this.#serving)) await this.#serving.stop("SIGKILL");
  }
}

/** Runs `use` with a new deployment that is not being served. */
export function withDeployment<T>(use: (deployment: Deployment) => Promise<T>): Promise<T> {
  return withFolder(async (folder) => {
    const dir = join(folder, "demo");
    await init(dir);
    const deployment = new Deployment(folder, dir);
    try {
      return await use(deployment);
    } finally {
      await deployment.dispose();
    }
  });
}

/** Runs `use` with a new deployment that is being served. */
export function withServing<T>(
  use: (deployment: Deployment) => Promise<T>,
  options: ServeOptions = {},
): Promise<T> {
  return withDeployment(async (deployment) => {
    await deployment.start(options);
    return await use(deployment);
  });
}

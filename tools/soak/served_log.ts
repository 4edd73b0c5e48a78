/**
 * The log under test: its directory, and the process that serves it. The process is stopped, killed
 * and restarted while clients use it, which retry until the service responds again.
 */
import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { EventLogClient } from "../../src/client/event_log_client.ts";
import { unixFetch } from "../../src/client/unix_fetch.ts";
import { init } from "../../src/commands/init.ts";
import type { RuntimeName } from "../support/runtimes.ts";
import { type Random, randomItem } from "../support/random.ts";
import { ANSWER_TIMEOUT_MS, RETRY_MS_MAX, ROTATE_BYTES } from "./bounds.ts";
import {
  type CliExit,
  describeExit,
  isRunning,
  OWN_CHECKOUT,
  type Serving,
  signalChild,
  spawnCli,
  type Spawned,
  spawnServe,
  untilReady,
} from "../support/program.ts";
import { patientClient } from "./patient_client.ts";
import { claim, claimInTime, Violation } from "./violation.ts";

export interface ServedLogOptions {
  /** The directory of the deployment. */
  dir: string;
  /** The service starts under a random one of these each time. */
  runtimes: readonly RuntimeName[];
  random: Random;
  /** Size at which the service seals its tail; default ROTATE_BYTES. */
  rotateBytes?: number;
  /** Called when the process exits unexpectedly. */
  onFailure: (error: Error) => void;
}

export class ServedLog {
  readonly dir: string;
  /** The directory with the log's files. */
  readonly logDir: string;
  readonly socketPath: string;
  /** Used by every client of this log. */
  readonly client: EventLogClient;
  readonly #options: ServedLogOptions;
  readonly #configPath: string;
  readonly #socketFolder: string;
  #process: Serving | null = null;
  /** All running processes. */
  readonly #running = new Set<Spawned>();

  /**
   * Initializes a log. Its socket is in the system's temporary directory because socket paths must
   * be short and not every file system supports sockets.
   */
  static async create(options: ServedLogOptions): Promise<ServedLog> {
    await init(options.dir);
    const log = new ServedLog(options, await mkdtemp(join(await realpath(tmpdir()), "soak-")));
    const config = await readFile(log.#configPath, "utf8");
    const socket = `socket = ${JSON.stringify(log.socketPath)}`;
    await writeFile(log.#configPath, config.replace(/^socket = .*$/m, () => socket));
    return log;
  }

  private constructor(options: ServedLogOptions, socketFolder: string) {
    this.#options = options;
    this.dir = options.dir;
    this.logDir = join(this.dir, "data", "log");
    this.#configPath = join(this.dir, "service.toml");
    this.#socketFolder = socketFolder;
    this.socketPath = join(socketFolder, "ground.sock");
    this.client = patientClient(unixFetch(this.socketPath), RETRY_MS_MAX, {
      writeTimeoutMs: ANSWER_TIMEOUT_MS,
    });
  }

  /** The PID of the serving process; null if there is none. */
  get pid(): number | null {
    return this.#process?.child.pid ?? null;
  }

  /** Output from the serving process. */
  get output(): Spawned["output"] {
    return this.#process!.output;
  }

  /** Starts the service under a random runtime, and resolves once it responds. */
  async start(): Promise<void> {
    const starting = this.launch();
    const message = "serve did not respond to its startup";
    await claimInTime(untilReady(starting), ANSWER_TIMEOUT_MS, message);
    this.#process = starting;
    starting.exited.then((exit) => {
      if (this.#process !== starting) return;
      this.#options.onFailure(new Violation(`serve exited unexpectedly: ${describeExit(exit)}`));
    }, this.#options.onFailure);
  }

  /** Starts a service without waiting until it responds. The caller must stop it. */
  launch(): Serving {
    const { rotateBytes = ROTATE_BYTES } = this.#options;
    const options = { ...this.#programOptions(), socketPath: this.socketPath, rotateBytes };
    return this.#watch(spawnServe(this.dir, options));
  }

  /** Stops the service as an operator would. */
  async stop(): Promise<void> {
    const exit = await this.#end("SIGTERM");
    claim(exit.code === 0, `serve did not exit cleanly after SIGTERM: ${describeExit(exit)}`);
  }

  /** Kills the service. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Requests a shutdown, and kills the service if it is still running after `momentMs`. */
  async killInShutdown(momentMs: number): Promise<CliExit> {
    const ending = this.#process!;
    const exited = this.#end("SIGTERM");
    await Promise.race([delay(momentMs), exited]);
    signalChild(ending.child, "SIGKILL");
    const exit = await exited;
    const isFine = exit.signal === "SIGKILL" || exit.code === 0;
    claim(isFine, `serve did not exit cleanly after SIGTERM: ${describeExit(exit)}`);
    return exit;
  }

  /** Suspends the service for a given time. */
  async freeze(durationMs: number, signal: AbortSignal): Promise<void> {
    const frozen = this.#process!;
    signalChild(frozen.child, "SIGSTOP");
    try {
      await delay(durationMs, undefined, { signal });
    } finally {
      signalChild(frozen.child, "SIGCONT");
    }
  }

  /** Runs another command on the log to completion. */
  run(args: string[]): Promise<CliExit> {
    return this.spawn(args).exited;
  }

  /** Starts another command on the log. */
  spawn(args: string[]): Spawned {
    return this.#watch(spawnCli(["--config", this.#configPath, ...args], this.#programOptions()));
  }

  /** Kills every process and removes the socket's directory, but keeps the log's directory. */
  async dispose(): Promise<void> {
    this.#process = null;
    for (const { child } of this.#running) signalChild(child, "SIGKILL");
    await Promise.allSettled([...this.#running].map(({ exited }) => exited));
    await rm(this.#socketFolder, { recursive: true, force: true });
  }

  /** Returns options that run the program under a random runtime with minimal permissions. */
  #programOptions() {
    const folders = `${this.dir},${this.#socketFolder}`;
    return {
      runtime: randomItem(this.#options.random, this.#options.runtimes),
      timeoutMs: null,
      permissions: [
        // A worker needs to read its module.
        `--allow-read=${folders},${OWN_CHECKOUT}`,
        `--allow-write=${folders}`,
        `--allow-net=unix:${this.socketPath}`,
        "--allow-sys",
      ],
    };
  }

  #watch<Started extends Spawned>(started: Started): Started {
    this.#running.add(started);
    const forget = () => void this.#running.delete(started);
    started.exited.then(forget, forget);
    return started;
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<CliExit> {
    const ending = this.#process!;
    this.#process = null;
    if (!isRunning(ending)) {
      throw new Violation(`serve exited unexpectedly: ${describeExit(await ending.exited)}`);
    }
    return await ending.stop(signal);
  }
}

/**
 * The log under test: its folder, and the one process that serves it, which is stopped, killed and
 * started again under its clients. Clients wait at a gate that is closed before anything is done to
 * the process and opened when it answers again.
 */
import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SYSTEM_TIMING, type Timing } from "../../src/client/timing.ts";
import { unixFetch } from "../../src/client/unix_fetch.ts";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import type { RuntimeName } from "../support/runtimes.ts";
import { type Random, randomItem } from "../support/random.ts";
import { ANSWER_TIMEOUT_MS, RETRY_MS_MAX, ROTATE_BYTES } from "./bounds.ts";
import {
  type CliExit,
  describeExit,
  isRunning,
  type Serving,
  signalChild,
  spawnCli,
  type Spawned,
  spawnServe,
  untilReady,
} from "../support/program.ts";
import { claim, Violation } from "./violation.ts";

/** The folder of this tree. */
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Clients ask again until the time is up, however often that is. */
const ATTEMPTS_MAX = 1_000_000;

export interface ServedLogOptions {
  /** Empty folder. */
  dir: string;
  /** Each start takes one of them. */
  runtimes: readonly RuntimeName[];
  random: Random;
  /** Size at which the service seals its tail; ROTATE_BYTES if absent. */
  rotateBytes?: number | undefined;
  /** Hears that the process ended by itself. */
  onFailure: (error: Error) => void;
}

export class ServedLog {
  readonly dir: string;
  /** For every client of this log. */
  readonly client: EventLogClient;
  readonly #options: ServedLogOptions;
  readonly #socketFolder: string;
  #process: Serving | null = null;
  /** All processes that have not ended. */
  readonly #running = new Set<Spawned>();
  #runtime: RuntimeName;
  #gate = Promise.withResolvers<void>();

  /**
   * Initializes a log. Its socket lies in the system's folder for temporary files: the path of one
   * is bounded, and not every file system has them.
   */
  static async create(options: ServedLogOptions): Promise<ServedLog> {
    const socketFolder = await mkdtemp(join(await realpath(tmpdir()), "soak-"));
    const log = new ServedLog(options, socketFolder);
    try {
      await log.#initialize();
    } catch (error) {
      await log.dispose();
      throw error;
    }
    return log;
  }

  private constructor(options: ServedLogOptions, socketFolder: string) {
    this.#options = options;
    this.dir = options.dir;
    this.#socketFolder = socketFolder;
    this.#runtime = randomItem(options.random, options.runtimes);
    const timing: Timing = {
      ...SYSTEM_TIMING,
      sleep: async (durationMs, signal) => {
        await this.untilServing(signal);
        await SYSTEM_TIMING.sleep(Math.min(durationMs, RETRY_MS_MAX), signal);
      },
    };
    this.client = new EventLogClient(unixFetch(this.socketPath), {
      attemptsMax: ATTEMPTS_MAX,
      writeTimeoutMs: ANSWER_TIMEOUT_MS,
      timing,
    });
  }

  /** Of the serving process; null when there is none. */
  get pid(): number | null {
    return this.#process?.child.pid ?? null;
  }

  /** What the serving process has written. */
  get output(): Spawned["output"] {
    return this.#process!.output;
  }

  /** That serves, or served last. */
  get runtime(): RuntimeName {
    return this.#runtime;
  }

  /** The folder of the log's files. */
  get logDir(): string {
    return join(this.dir, "data", "log");
  }

  /** Resolves once the service answers. @throws the reason of the signal. */
  async untilServing(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    let abort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      abort = () => reject(signal?.reason);
    });
    signal?.addEventListener("abort", abort, { once: true });
    try {
      await Promise.race([this.#gate.promise, aborted]);
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Starts the service under a runtime by chance; returns once it answers. */
  async start(): Promise<void> {
    const starting = this.launch();
    await this.#untilReady(starting);
    this.#process = starting;
    this.#gate.resolve();
    starting.exited.then((exit) => {
      if (this.#process !== starting) return;
      this.#options.onFailure(new Violation(`serve ended by itself with ${describeExit(exit)}`));
    }, this.#options.onFailure);
  }

  /** Starts a service that nobody waits for, and that the caller ends. */
  launch(): Serving {
    const { rotateBytes = ROTATE_BYTES } = this.#options;
    const options = { ...this.#programOptions(), socketPath: this.socketPath, rotateBytes };
    return this.#watch(spawnServe(this.dir, options));
  }

  /** Ends the service as an operator does. */
  async stop(): Promise<void> {
    const exit = await this.#end("SIGTERM");
    claim(exit.code === 0, `serve did not end well after SIGTERM: ${describeExit(exit)}`);
  }

  /** Ends the service as a crash does. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Tells the service to shut down, and ends it as a crash does if it has not ended in time. */
  async killInShutdown(momentMs: number): Promise<CliExit> {
    const ending = this.#process!;
    const exited = this.#end("SIGTERM");
    await Promise.race([delay(momentMs), exited]);
    signalChild(ending.child, "SIGKILL");
    const exit = await exited;
    const isFine = exit.signal === "SIGKILL" || exit.code === 0;
    claim(isFine, `serve did not end well after SIGTERM: ${describeExit(exit)}`);
    return exit;
  }

  /** Stops the service from running for a while. */
  async freeze(durationMs: number, signal: AbortSignal): Promise<void> {
    const frozen = this.#process!;
    signalChild(frozen.child, "SIGSTOP");
    try {
      await delay(durationMs, undefined, { signal });
    } finally {
      signalChild(frozen.child, "SIGCONT");
    }
  }

  /** Runs another command on the log to its end. */
  run(args: string[]): Promise<CliExit> {
    return this.spawn(args).exited;
  }

  /** Starts another command on the log. */
  spawn(args: string[]): Spawned {
    return this.#watch(spawnCli(["--config", this.#configPath, ...args], this.#programOptions()));
  }

  /** Ends every process and removes the socket's folder; the log's own folder stays. */
  async dispose(): Promise<void> {
    this.#process = null;
    for (const { child } of this.#running) signalChild(child, "SIGKILL");
    await Promise.allSettled([...this.#running].map(({ exited }) => exited));
    await rm(this.#socketFolder, { recursive: true, force: true });
  }

  async #initialize(): Promise<void> {
    const exit = await this.#watch(spawnCli(["init", this.dir], this.#programOptions())).exited;
    claim(exit.code === 0, `init: ${describeExit(exit)}`);
    const config = await readFile(this.#configPath, "utf8");
    const socket = `socket = ${JSON.stringify(this.socketPath)}`;
    await writeFile(this.#configPath, config.replace(/^socket = .*$/m, () => socket));
  }

  get #configPath(): string {
    return join(this.dir, "service.toml");
  }

  get socketPath(): string {
    return join(this.#socketFolder, "ground.sock");
  }

  /** Under a runtime by chance, with no more permissions than it needs. */
  #programOptions() {
    this.#runtime = randomItem(this.#options.random, this.#options.runtimes);
    const folders = `${this.dir},${this.#socketFolder}`;
    return {
      runtime: this.#runtime,
      timeoutMs: null,
      permissions: [
        // A thread needs to read its module.
        `--allow-read=${folders},${ROOT}`,
        `--allow-write=${folders}`,
        `--allow-net=unix:${this.socketPath}`,
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
    this.#gate = Promise.withResolvers();
    if (!isRunning(ending)) {
      throw new Violation(`serve ended by itself with ${describeExit(await ending.exited)}`);
    }
    return await ending.stop(signal);
  }

  async #untilReady(starting: Serving): Promise<void> {
    const waiting = new AbortController();
    const hanging = delay(ANSWER_TIMEOUT_MS, "hanging", { signal: waiting.signal })
      .catch(() => "over");
    let outcome: string | void;
    try {
      outcome = await Promise.race([untilReady(starting), hanging]);
    } catch (error) {
      throw new Violation((error as Error).message, { cause: error });
    } finally {
      waiting.abort();
    }
    if (outcome !== "hanging") return;
    signalChild(starting.child, "SIGKILL");
    throw new Violation(`serve does not answer ${ANSWER_TIMEOUT_MS} ms after its start`);
  }
}

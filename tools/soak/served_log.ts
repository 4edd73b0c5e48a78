/**
 * The log under test: its folder, and the one process that serves it, which is stopped, killed and
 * started again under its clients. Clients wait at a gate that is closed before anything is done to
 * the process and opened when it answers again.
 */
import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SYSTEM_TIMING, type Timing } from "../../src/client/timing.ts";
import { unixFetch } from "../../src/client/unix_fetch.ts";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import type { RuntimeName } from "../support/runtimes.ts";
import { type Random, randomItem } from "../support/random.ts";
import { ANSWER_TIMEOUT_MS, READY_POLL_MS, RETRY_MS_MAX, ROTATE_BYTES } from "./bounds.ts";
import {
  describeExit,
  type ProcessExit,
  ROOT,
  SERVE_ROTATING,
  ServiceProcess,
} from "./service_process.ts";
import { claim, Violation } from "./violation.ts";

/** Clients ask again until the time is up, however often that is. */
const ATTEMPTS_MAX = 1_000_000;

export interface ServedLogOptions {
  /** Empty folder. */
  dir: string;
  /** Each start takes one of them. */
  runtimes: readonly RuntimeName[];
  random: Random;
  /** Hears that the process ended by itself. */
  onFailure: (error: Error) => void;
}

export class ServedLog {
  readonly dir: string;
  /** For every client of this log. */
  readonly client: EventLogClient;
  readonly #options: ServedLogOptions;
  readonly #socketFolder: string;
  #process: ServiceProcess | null = null;
  /** All processes that have not ended. */
  readonly #running = new Set<ServiceProcess>();
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
    this.client = new EventLogClient(unixFetch(this.#socketPath), {
      attemptsMax: ATTEMPTS_MAX,
      writeTimeoutMs: ANSWER_TIMEOUT_MS,
      timing,
    });
  }

  /** Of the serving process; null when there is none. */
  get pid(): number | null {
    return this.#process?.pid ?? null;
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
  launch(): ServiceProcess {
    this.#chooseRuntime();
    return this.#spawn([this.#configPath, `${ROTATE_BYTES}`], SERVE_ROTATING);
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

  /** Stops the service from running for a while. */
  async freeze(durationMs: number, signal: AbortSignal): Promise<void> {
    const frozen = this.#process!;
    frozen.signal("SIGSTOP");
    try {
      await delay(durationMs, undefined, { signal });
    } finally {
      frozen.signal("SIGCONT");
    }
  }

  /** Runs another command on the log to its end. */
  run(args: string[]): Promise<ProcessExit> {
    return this.spawn(args).exited;
  }

  /** Starts another command on the log. */
  spawn(args: string[]): ServiceProcess {
    this.#chooseRuntime();
    return this.#spawn(["--config", this.#configPath, ...args]);
  }

  /** Ends every process and removes the socket's folder; the log's own folder stays. */
  async dispose(): Promise<void> {
    this.#process = null;
    for (const running of this.#running) running.signal("SIGKILL");
    await Promise.allSettled([...this.#running].map(({ exited }) => exited));
    await rm(this.#socketFolder, { recursive: true, force: true });
  }

  async #initialize(): Promise<void> {
    const exit = await this.#spawn(["init", this.dir]).exited;
    claim(exit.code === 0, `init: ${describeExit(exit)}`);
    const config = await readFile(this.#configPath, "utf8");
    const socket = `socket = ${JSON.stringify(this.#socketPath)}`;
    await writeFile(this.#configPath, config.replace(/^socket = .*$/m, () => socket));
  }

  get #configPath(): string {
    return join(this.dir, "service.toml");
  }

  get #socketPath(): string {
    return join(this.#socketFolder, "ground.sock");
  }

  #chooseRuntime(): void {
    this.#runtime = randomItem(this.#options.random, this.#options.runtimes);
  }

  #spawn(args: string[], script?: string): ServiceProcess {
    const folders = `${this.dir},${this.#socketFolder}`;
    const started = new ServiceProcess(args, {
      runtime: this.#runtime,
      permissions: [
        // A thread needs to read its module.
        `--allow-read=${folders},${ROOT}`,
        `--allow-write=${folders}`,
        `--allow-net=unix:${this.#socketPath}`,
      ],
      ...(script === undefined ? {} : { script }),
    });
    this.#running.add(started);
    const forget = () => void this.#running.delete(started);
    started.exited.then(forget, forget);
    return started;
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<ProcessExit> {
    const ending = this.#process!;
    this.#process = null;
    this.#gate = Promise.withResolvers();
    if (ending.exit !== null) {
      throw new Violation(`serve ended by itself with ${describeExit(ending.exit)}`);
    }
    ending.signal(signal);
    return await ending.exited;
  }

  async #untilReady(starting: ServiceProcess): Promise<void> {
    const fetch = unixFetch(this.#socketPath);
    const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
    while (starting.exit === null) {
      try {
        const response = await fetch("/v1/events?limit=1", { signal });
        await response.arrayBuffer();
        if (response.status === 200) return;
      } catch {
        // Nobody listens yet; the time limit ends this.
      }
      if (signal.aborted) {
        starting.signal("SIGKILL");
        throw new Violation(`serve does not answer ${ANSWER_TIMEOUT_MS} ms after its start`);
      }
      await delay(READY_POLL_MS);
    }
    throw new Violation(`serve ended with ${describeExit(starting.exit)}, instead of serving`);
  }
}

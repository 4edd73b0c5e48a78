/**
 * A real `nats-server` with JetStream on its own port, which can be killed and restarted.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { findProgram } from "../../../tools/support/find_program.ts";
import { withFolder } from "../../../tools/support/program.ts";

const PROGRAM = findProgram("nats-server");

/** Options of a test that needs a server. */
export const NEEDS_NATS = {
  skip: PROGRAM === null ? "no nats-server here; Debian has it as a package" : false,
};

const LISTENING = /Listening for client connections on \S+:(\d+)/;

export class NatsServer {
  /** The folder of its data. */
  readonly storeDir: string;
  readonly #configPath: string;
  #port = -1;
  #child: ChildProcess | undefined;
  #exited = Promise.resolve();
  #connection: Promise<NatsConnection> | undefined;

  constructor(folder: string) {
    this.storeDir = join(folder, "store");
    this.#configPath = join(folder, "nats.conf");
  }

  /** Its address, known after the first start. */
  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  /** Starts it; resolves once it accepts clients. @param config Lines of its configuration. */
  async start(config = ""): Promise<void> {
    await mkdir(this.storeDir, { recursive: true });
    await writeFile(this.#configPath, config);
    const place = ["-a", "127.0.0.1", "-p", String(this.#port), "-sd", this.storeDir];
    const child = spawn(PROGRAM!, ["-js", "-c", this.#configPath, ...place], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child = child;
    this.#exited = new Promise((resolve) => child.once("exit", () => resolve()));
    const ready = Promise.withResolvers<void>();
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      if (log.includes("Server is ready")) ready.resolve();
    });
    const ended = this.#exited.then(() => Promise.reject(new Error(`nats-server ended: ${log}`)));
    await Promise.race([ready.promise, ended]);
    ended.catch(() => {});
    this.#port = Number(LISTENING.exec(log)![1]);
    this.#connection = undefined;
  }

  /** A connection for the test itself; the next start or stop closes it. */
  connect(): Promise<NatsConnection> {
    this.#connection ??= connect({ servers: this.url, reconnect: false });
    return this.#connection;
  }

  /** Stops it, if it is running. */
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGKILL"): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.then((open) => open.close(), () => {});
    this.#child?.kill(signal);
    await this.#exited;
  }
}

/** Runs `use` with a server. @param config Lines of its configuration. */
export async function withNats(
  use: (server: NatsServer) => Promise<void>,
  config: string,
): Promise<void> {
  await withFolder(async (folder) => {
    const server = new NatsServer(folder);
    try {
      await server.start(config);
      await use(server);
    } finally {
      await server.stop();
    }
  });
}

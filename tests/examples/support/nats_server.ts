/** A real `nats-server` with JetStream on its own port, which can be killed and restarted. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { findProgram } from "../../../tools/support/find_program.ts";
import { withFolder } from "../../../tools/support/program.ts";

const PROGRAM = findProgram("nats-server");

/** Options for a test that needs `nats-server`. */
export const NEEDS_NATS = {
  skip: PROGRAM === null ? "no nats-server here; Debian has it as a package" : false,
};

const LISTENING = /Listening for client connections on \S+:(\d+)/;

export class NatsServer {
  /** The server's data directory. */
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

  /** The server's address, known after the first start. */
  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  /** Starts the server and waits until it accepts clients. @param config extra configuration. */
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

  /** The test's own connection, which is closed by the next stop. */
  connect(): Promise<NatsConnection> {
    this.#connection ??= connect({ servers: this.url, reconnect: false });
    return this.#connection;
  }

  /** Stops the server if it is running. */
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGKILL"): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.then((open) => open.close(), () => {});
    this.#child?.kill(signal);
    await this.#exited;
  }
}

/** Runs `use` with a server. @param config extra configuration lines. */
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

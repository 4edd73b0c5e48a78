/** Real NATS servers, one or a cluster of three, which tests can kill and restart. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { findProgram } from "../../../tools/support/find_program.ts";
import { freePort } from "../../../tools/support/free_port.ts";
import { signalChild, withFolder } from "../../../tools/support/program.ts";

const PROGRAM = process.env.MIRROR_TEST_NATS_SERVER ?? findProgram("nats-server");

/** Options for a test that needs `nats-server`. */
export const NEEDS_NATS = {
  skip: PROGRAM === null ? "nats-server is not installed (Debian package: nats-server)" : false,
};

const HOST = "127.0.0.1";
const CLUSTER_SERVERS = 3;

export class NatsServer {
  /** The server's data directory. */
  readonly storeDir: string;
  readonly #configPath: string;
  readonly #port: number;
  #config: string;
  #child: ChildProcess | undefined;
  #exited = Promise.resolve();
  #connection: Promise<NatsConnection> | undefined;

  /** @param config Lines for the server's configuration. */
  constructor(folder: string, port: number, config: string) {
    this.storeDir = join(folder, "store");
    this.#configPath = join(folder, "nats.conf");
    this.#port = port;
    this.#config = config;
  }

  get url(): string {
    return `nats://${HOST}:${this.#port}`;
  }

  /** Starts the server and waits until it accepts clients. @param config New configuration. */
  async start(config = this.#config): Promise<void> {
    this.#config = config;
    await mkdir(this.storeDir, { recursive: true });
    await writeFile(this.#configPath, config);
    const place = ["-a", HOST, "-p", String(this.#port), "-sd", this.storeDir];
    const child = spawn(PROGRAM!, ["-js", "-c", this.#configPath, ...place], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    await once(child, "spawn");
    this.#child = child;
    this.#exited = new Promise((resolve) => child.once("exit", () => resolve()));
    const ready = Promise.withResolvers<void>();
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      if (log.includes("Server is ready")) ready.resolve();
    });
    const ended = this.#exited.then(() => Promise.reject(new Error(`nats-server exited: ${log}`)));
    await Promise.race([ready.promise, ended]);
    ended.catch(() => {});
    this.#connection = undefined;
  }

  /** Returns the test's connection to the server. `stop()` closes it. */
  connect(): Promise<NatsConnection> {
    this.#connection ??= connect({ servers: this.url, reconnect: false });
    return this.#connection;
  }

  /** Suspends the server until `thaw()` or `stop("SIGKILL")`. */
  freeze(): void {
    signalChild(this.#child!, "SIGSTOP");
  }

  thaw(): void {
    signalChild(this.#child!, "SIGCONT");
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

/** Runs `use` with one server. @param config Lines for the server's configuration. */
export async function withNats(
  use: (server: NatsServer) => Promise<void>,
  config = "",
): Promise<void> {
  await withFolder(async (folder) => {
    const server = new NatsServer(folder, await freePort(), config);
    try {
      await server.start();
      await use(server);
    } finally {
      await server.stop();
    }
  });
}

/** Runs `use` with a cluster of three servers, named n0 to n2. */
export async function withCluster(use: (servers: NatsServer[]) => Promise<void>): Promise<void> {
  await withFolder(async (folder) => {
    const numbers = Array.from({ length: CLUSTER_SERVERS }, (_, number) => number);
    const ports = await Promise.all(numbers.map(freePort));
    const routes = ports.map((port) => `nats://${HOST}:${port}`).join(", ");
    const servers = await Promise.all(numbers.map(async (number) => {
      const own = join(folder, `n${number}`);
      await mkdir(own);
      const config = `server_name: n${number}\n` +
        `cluster { name: test, listen: "${HOST}:${ports[number]}", routes: [${routes}] }\n`;
      return new NatsServer(own, await freePort(), config);
    }));
    try {
      await Promise.all(servers.map((server) => server.start()));
      await use(servers);
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
  });
}

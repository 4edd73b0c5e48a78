/**
 * `Deno.serve` that outlives a failed accept(2). Deno's server stops accepting for good at the
 * first one, such as EMFILE when clients hold all descriptors; it still serves the connections that
 * it has. So another one takes its place at the same path.
 */
import { ACCEPT_RETRY_MS } from "../limits.ts";
import { removeSocketFile, type SocketFile, socketFileAt } from "./socket_file.ts";

/** Starts a server at the path; `onRequest` is to be called for each request. */
export type StartServer = (onRequest: () => void) => Deno.HttpServer;

export class DenoAcceptor {
  readonly #path: string;
  readonly #start: StartServer;
  readonly #report: (line: string) => void;
  /** The one that accepts, and earlier ones that may have connections. */
  readonly #servers: Set<Deno.HttpServer> = new Set();
  #socketFile: SocketFile;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #isClosing = false;

  /** @throws {Error} the socket cannot be bound. */
  constructor(path: string, start: StartServer, report: (line: string) => void) {
    this.#path = path;
    this.#start = start;
    this.#report = report;
    this.#socketFile = this.#listen();
  }

  /** The file of the newest socket. */
  get socketFile(): SocketFile {
    return this.#socketFile;
  }

  /** Stops accepting. Resolves when all connections have ended. */
  async shutdown(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#retry);
    await Promise.all([...this.#servers].map((server) => server.shutdown()));
  }

  #listen(): SocketFile {
    let isUsed = false;
    const server = this.#start(() => isUsed = true);
    this.#servers.add(server);
    server.finished.catch((error: unknown) => {
      if (!isUsed) this.#forget(server);
      if (this.#isClosing) return;
      this.#report(`no connections accepted for ${ACCEPT_RETRY_MS} ms: ${describe(error)}`);
      this.#listenLater();
    });
    return socketFileAt(this.#path);
  }

  /** Only a path with our own file, or with none, is listened on again. */
  #listenLater(): void {
    this.#retry = setTimeout(() => {
      try {
        removeSocketFile(this.#socketFile);
        this.#socketFile = this.#listen();
      } catch (error) {
        this.#report(`${this.#path}: cannot be bound again: ${describe(error)}`);
        this.#listenLater();
      }
    }, ACCEPT_RETRY_MS);
  }

  /** A server that never had a request is not waited for, however often this happens. */
  #forget(server: Deno.HttpServer): void {
    this.#servers.delete(server);
    server.shutdown().catch(() => {});
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : typeof error;
}

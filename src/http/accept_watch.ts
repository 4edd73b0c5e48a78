/**
 * Detects that a server has stopped accepting connections, by connecting to it when idle. After an
 * accept(2) that failed with EMFILE, Deno 2.9 silently accepts no further connection.
 */
import { connect, type Socket } from "node:net";
import { clearInterval, setInterval } from "node:timers";

export interface AcceptWatchOptions {
  /** Path of the listening socket. */
  path: string;
  /** Time between probes. A server that accepts nothing for one interval is stuck. */
  intervalMs: number;
  /** Reopens the socket. Retried after the next interval if it rejects. */
  reopen: () => Promise<void>;
}

export class AcceptWatch {
  readonly #path: string;
  readonly #reopen: () => Promise<void>;
  readonly #timer: ReturnType<typeof setInterval>;
  #hasAccepted = false;
  #probe: Socket | null = null;
  /** Whether the probe is still unaccepted. */
  #isProbing = false;
  #isReopening = false;

  constructor({ path, intervalMs, reopen }: AcceptWatchOptions) {
    this.#path = path;
    this.#reopen = reopen;
    this.#timer = setInterval(() => this.#look(), intervalMs).unref();
  }

  /** Must be called for each accepted connection. */
  accepted(): void {
    this.#hasAccepted = true;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#probe?.destroy();
  }

  #look(): void {
    if (this.#isReopening) return;
    const isStuck = this.#isProbing && !this.#hasAccepted;
    this.#probe?.destroy();
    this.#isProbing = false;
    if (isStuck) void this.#open();
    else if (!this.#hasAccepted) this.#connect();
    this.#hasAccepted = false;
  }

  #connect(): void {
    const probe = connect(this.#path);
    this.#probe = probe;
    this.#isProbing = true;
    probe.unref();
    probe.on("error", (error) => {
      // EAGAIN: the backlog is full. Other errors are inconclusive, for example EMFILE here.
      if ("code" in error && error.code === "EAGAIN") return;
      this.#isProbing = false;
    });
  }

  async #open(): Promise<void> {
    this.#isReopening = true;
    try {
      await this.#reopen();
    } catch {
      // Makes the next interval retry.
      this.#isProbing = true;
    } finally {
      this.#isReopening = false;
    }
  }
}

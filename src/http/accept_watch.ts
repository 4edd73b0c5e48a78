/**
 * Probes whether a server still accepts connections, by making one when none has come for a while.
 * After an accept(2) that failed for want of a descriptor, Deno 2.9 accepts no further connection
 * and reports nothing: all clients would wait until a restart.
 */
import { connect, type Socket } from "node:net";
import { clearInterval, setInterval } from "node:timers";

export interface AcceptWatchOptions {
  /** Of the listening socket. */
  path: string;
  /** Between two probes. A server that accepts none from one to the next is stuck. */
  intervalMs: number;
  /** Reopens the socket. Called again after the next interval when it rejects. */
  reopen: () => Promise<void>;
}

export class AcceptWatch {
  readonly #path: string;
  readonly #reopen: () => Promise<void>;
  readonly #timer: ReturnType<typeof setInterval>;
  #hasAccepted = false;
  /** The latest probe. */
  #probe: Socket | null = null;
  /** Whether the probe waits to be accepted. */
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
      // EAGAIN: the backlog is full. Any other failure is inconclusive: the probe itself may lack a
      // descriptor.
      if ("code" in error && error.code === "EAGAIN") return;
      this.#isProbing = false;
    });
  }

  /** When reopening fails, the next interval tries again. */
  async #open(): Promise<void> {
    this.#isReopening = true;
    try {
      await this.#reopen();
    } catch {
      this.#isProbing = true;
    } finally {
      this.#isReopening = false;
    }
  }
}

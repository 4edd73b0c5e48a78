/**
 * Looks whether a server still accepts connections, by making one where none has come for a while.
 * After an accept(2) that failed because no descriptor was left, Deno 2.9 accepts nothing any more
 * and does not tell: everybody would wait until a restart.
 */
import { connect, type Socket } from "node:net";
import { clearInterval, setInterval } from "node:timers";

export interface AcceptWatchOptions {
  /** Of the listening socket. */
  path: string;
  /** Between two looks. Nothing accepted from one to the next means that nothing is. */
  intervalMs: number;
  /** Opens the socket anew. Called again after the next interval when it rejects. */
  reopen: () => Promise<void>;
}

export class AcceptWatch {
  readonly #path: string;
  readonly #reopen: () => Promise<void>;
  readonly #timer: ReturnType<typeof setInterval>;
  #hasAccepted = false;
  /** Made at the last look. */
  #probe: Socket | null = null;
  /** Whether it waits to be accepted. */
  #isProbing = false;
  #isReopening = false;

  constructor({ path, intervalMs, reopen }: AcceptWatchOptions) {
    this.#path = path;
    this.#reopen = reopen;
    this.#timer = setInterval(() => this.#look(), intervalMs).unref();
  }

  /** To be called for each connection that is accepted. */
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
      // The queue of those who wait to be accepted is full. Any other failure tells nothing: there
      // may be no descriptor for the probe either.
      if ("code" in error && error.code === "EAGAIN") return;
      this.#isProbing = false;
    });
  }

  /** The next look finds a socket that could not be opened as it is: closed. */
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

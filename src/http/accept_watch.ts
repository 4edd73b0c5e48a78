/**
 * Detects that clients can't reach a server because its socket file was removed or the server
 * stopped accepting connections. An idle server checks the latter by connecting to itself. Deno 2.9
 * silently stops accepting connections after accept(2) fails with EMFILE.
 */
import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { clearInterval, setInterval } from "node:timers";

const FILE_CHECK_INTERVAL_MS = 500;

export class AcceptWatch {
  readonly #path: string;
  readonly #reopen: () => Promise<void>;
  readonly #timers: ReturnType<typeof setInterval>[];
  #hasAccepted = false;
  #probe: Socket | null = null;
  #state: "idle" | "probing" | "reopening" = "idle";

  /**
   * @param intervalMs A server that accepts nothing for this long counts as stuck.
   * @param reopen reopens the socket. Retried after the next interval if it rejects.
   */
  constructor(path: string, intervalMs: number, reopen: () => Promise<void>) {
    this.#path = path;
    this.#reopen = reopen;
    // These timers keep the process running while there is no socket to keep it running.
    this.#timers = [
      setInterval(() => this.#look(), intervalMs),
      setInterval(() => existsSync(path) || this.#open(), FILE_CHECK_INTERVAL_MS),
    ];
  }

  /** Must be called for each accepted connection. */
  accepted(): void {
    this.#hasAccepted = true;
  }

  stop(): void {
    this.#timers.forEach(clearInterval);
    this.#probe?.destroy();
  }

  #look(): void {
    if (this.#state === "reopening") return;
    const isStuck = this.#state === "probing" && !this.#hasAccepted;
    this.#probe?.destroy();
    this.#state = "idle";
    if (isStuck) this.#open();
    else if (!this.#hasAccepted) this.#connect();
    this.#hasAccepted = false;
  }

  #connect(): void {
    this.#state = "probing";
    this.#probe = connect(this.#path).unref();
    this.#probe.on("error", (error) => {
      // EAGAIN: the backlog is full. ECONNREFUSED: another file is there. Other errors, such as
      // EMFILE on our side, are inconclusive.
      const isStuck = "code" in error && ["EAGAIN", "ECONNREFUSED"].includes(`${error.code}`);
      if (!isStuck && this.#state === "probing") this.#state = "idle";
    });
  }

  #open(): void {
    if (this.#state === "reopening") return;
    this.#state = "reopening";
    // After a failure, retry at the next interval, as after a failed probe.
    this.#reopen().then(() => this.#state = "idle", () => this.#state = "probing");
  }
}

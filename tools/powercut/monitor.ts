/** A connection to qemu's monitor (QMP): JSON commands and replies, one per line. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

const RETRY_MS = 10;

type Reply = { return: unknown } | { error: { desc: string } };

export class Monitor {
  readonly #socket: Socket;
  readonly #lines: AsyncIterator<string>;

  /** Connects to a monitor that a new process creates. */
  static async connect(path: string, isRunning: () => boolean): Promise<Monitor> {
    for (;;) {
      const socket = connect(path);
      try {
        await once(socket, "connect");
        const monitor = new Monitor(socket);
        await monitor.run("qmp_capabilities");
        return monitor;
      } catch (error) {
        if (!isRunning()) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    // When the machine is killed, its connection may be reset.
    socket.on("error", () => {});
    this.#lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  }

  /** Runs a command. @throws {Error} if it fails. */
  async run(execute: string, args: object = {}): Promise<unknown> {
    this.#socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done === true) throw new Error(`the monitor closed during ${execute}`);
      const reply = JSON.parse(value) as Reply;
      if ("error" in reply) throw new Error(`${execute}: ${reply.error.desc}`);
      // Other lines are events.
      if ("return" in reply) return reply.return;
    }
  }

  /** Closes the connection to allow another one, since the monitor serves one at a time. */
  close(): void {
    this.#socket.destroy();
  }
}

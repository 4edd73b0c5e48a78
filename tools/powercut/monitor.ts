/** Connections to qemu's monitor (QMP): JSON commands and replies, one per line. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

const RETRY_MS = 10;

type Reply = { return: unknown } | { error: { desc: string } };

/** Runs a command. @throws {Error} if it fails. */
type Run = (execute: string, args?: object) => Promise<unknown>;

/** Runs `use` with a connection to a monitor, which serves only one at a time. */
export async function withMonitor(
  path: string,
  isRunning: () => boolean,
  use: (run: Run) => Promise<void>,
): Promise<void> {
  const socket = await connected(path, isRunning);
  // When the machine is killed, its connection may be reset.
  socket.on("error", () => {});
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  const run: Run = async (execute, args = {}) => {
    socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
    for (;;) {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`the monitor closed during ${execute}`);
      const reply = JSON.parse(value) as Reply;
      if ("error" in reply) throw new Error(`${execute}: ${reply.error.desc}`);
      // Other lines are events.
      if ("return" in reply) return reply.return;
    }
  };
  try {
    await run("qmp_capabilities");
    await use(run);
  } finally {
    socket.destroy();
  }
}

/** Connects to a monitor, which a process that has just been started creates. */
async function connected(path: string, isRunning: () => boolean): Promise<Socket> {
  for (;;) {
    const socket = connect(path);
    try {
      await once(socket, "connect");
      return socket;
    } catch (error) {
      if (!isRunning()) throw error;
      await delay(RETRY_MS);
    }
  }
}

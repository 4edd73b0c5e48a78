/** Checks the path of the service's socket, so that a mistake is reported before NATS is asked. */
import { once } from "node:events";
import { statSync } from "node:fs";
import { connect } from "node:net";
import { ConnectionError, unixFetch } from "../../mod.ts";
import { mayRepeat, systemCodeOf } from "../../src/client/retry.ts";
import { usageError } from "../../src/commands/exit.ts";

/** @throws {CommandError} if no connection can ever succeed. The service may start later. */
export async function checkSocket(path: string): Promise<void> {
  try {
    unixFetch(path);
    if (!statSync(path).isSocket()) throw new Error(`${path} is not a socket`);
    const socket = connect(path);
    await once(socket, "connect");
    socket.destroy();
  } catch (cause) {
    const { message } = cause as Error;
    const isPassing = mayRepeat(new ConnectionError(message, { cause }));
    // An invalid path and a missing permission of Deno have no code.
    if (isPassing && systemCodeOf(cause) !== undefined) return;
    throw usageError(`--socket: ${message.replace("unixFetch()", "push")}`);
  }
}

/**
 * What lies at the socket path before `serve` binds it. Only a socket that refuses a connection is
 * stale and removed; a live one, one that cannot be told, and any other file stay untouched.
 */
import { lstat, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { operationalError } from "./exit.ts";
import { describeError, errorCode } from "./system_error.ts";

/**
 * How long an existing socket may take to accept or refuse a connection before it counts as live.
 */
const SOCKET_PROBE_TIMEOUT_MS = 1000;

/** Makes room for a socket at `path`. @throws {CommandError} exit status 1 when it is taken. */
export async function clearSocketPath(path: string): Promise<void> {
  if (!await isSocket(path)) return;
  const fault = await probe(path);
  if (fault === null) {
    throw operationalError(`${path}: another service is listening on this socket; stop it first`);
  }
  if (errorCode(fault) !== "ECONNREFUSED") {
    throw operationalError(
      `${path}: cannot tell whether a service is listening on this socket; remove it once ` +
        `none is: ${describeError(fault)}`,
      fault,
    );
  }
  await unlink(path);
}

async function isSocket(path: string): Promise<boolean> {
  try {
    if ((await lstat(path)).isSocket()) return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
  throw operationalError(`${path}: exists and is not a socket; move it, or set [server] socket`);
}

/** Connects and hangs up. @returns what went wrong; null when the connection was accepted. */
function probe(path: string): Promise<Error | null> {
  return new Promise((resolve) => {
    const connection = connect({ path });
    const end = (fault: Error | null) => {
      connection.destroy();
      resolve(fault);
    };
    connection.setTimeout(
      SOCKET_PROBE_TIMEOUT_MS,
      () => end(new Error(`no answer within ${SOCKET_PROBE_TIMEOUT_MS} ms`)),
    );
    connection.on("connect", () => end(null));
    connection.on("error", end);
  });
}

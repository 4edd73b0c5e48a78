/**
 * Removes a stale socket (one that refuses connections) before `serve` binds the path. Other
 * sockets and files are never removed.
 */
import { unlink } from "node:fs/promises";
import { connect } from "node:net";
import { entryKind } from "./deployment.ts";
import { operationalError } from "./exit.ts";
import { errorCode } from "../log/storage/storage.ts";
import { describeError } from "./system_error.ts";

/** Timeout for an existing socket to accept or refuse a connection. */
const SOCKET_PROBE_TIMEOUT_MS = 1000;

/** Removes a stale socket. @throws {CommandError} with exit status 1 if the path is in use. */
export async function clearSocketPath(path: string): Promise<void> {
  const kind = entryKind(path);
  if (kind === null) return;
  if (kind !== "socket") {
    throw operationalError(`${path}: exists and is not a socket; move it, or set [server] socket`);
  }
  const fault = await probe(path);
  if (fault === null) {
    throw operationalError(`${path}: another service is listening on this socket; stop it first`);
  }
  if (errorCode(fault) === "ECONNREFUSED") return await unlink(path);
  throw operationalError(
    `${path}: cannot determine whether a service is listening on this socket: ` +
      `${describeError(fault)}; remove the socket if no process is listening on it`,
    fault,
  );
}

/** Connects and disconnects. @returns the error; null if the connection was accepted. */
function probe(path: string): Promise<Error | null> {
  return new Promise((resolve) => {
    const connection = connect({ path });
    const end = (fault: Error | null) => {
      connection.destroy();
      resolve(fault);
    };
    const timeout = new Error(`no response within ${SOCKET_PROBE_TIMEOUT_MS} ms`);
    connection.setTimeout(SOCKET_PROBE_TIMEOUT_MS, () => end(timeout));
    connection.on("connect", () => end(null));
    connection.on("error", end);
  });
}

/** Runs the measured servers in `server.ts` as child processes. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  executableOf,
  ownRuntime,
  type RuntimeName,
  ServerProcess,
} from "../support/deployment.ts";

const SERVER = fileURLToPath(new URL("./server.ts", import.meta.url));
const START_TIMEOUT_MS = 30_000;

/** A running server. */
export interface Served {
  socketPath: string;
  pid: number;
}

/**
 * Runs a bare server during `use`.
 * @param runtime the current runtime is used instead of a compiled executable, which cannot run
 * such a server.
 * @param folder directory for the socket and the file, on the disk under test.
 */
export async function withFloor<T>(
  floor: string,
  runtime: RuntimeName,
  folder: string,
  use: (served: Served) => Promise<T>,
): Promise<T> {
  const [socketPath, file] = [join(folder, "floor.sock"), join(folder, "floor.log")];
  const used = runtime === "executable" ? ownRuntime() : runtime;
  const server = ServerProcess.spawn(executableOf(used), [
    ...(used === "deno" ? ["run", "--no-prompt", "--allow-all"] : []),
    ...[SERVER, floor, socketPath, file],
  ]);
  try {
    await server.waitUntilReady(socketPath, performance.now() + START_TIMEOUT_MS);
    return await use({ socketPath, pid: server.pid });
  } finally {
    server.signal("SIGKILL");
    await server.exited;
    await rm(file, { force: true });
    await rm(socketPath, { force: true });
  }
}

/** Runs the bare servers in `floor_server.ts` as child processes. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  answers,
  executableOf,
  ownRuntime,
  type RuntimeName,
  Server,
} from "../support/deployment.ts";

const SERVER = fileURLToPath(new URL("./floor_server.ts", import.meta.url));

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
  work: string,
  runtime: RuntimeName,
  folder: string,
  use: (served: Served) => Promise<T>,
): Promise<T> {
  const [socketPath, file] = [join(folder, "floor.sock"), join(folder, "floor.log")];
  const used = runtime === "executable" ? ownRuntime() : runtime;
  const flags = used === "deno" ? ["run", "--no-prompt", "--allow-all"] : [];
  const command = [executableOf(used), ...flags, SERVER, work, socketPath, file];
  const server = await Server.start(command, () => answers(socketPath));
  try {
    return await use({ socketPath, pid: server.pid });
  } finally {
    await server.kill();
    await rm(file, { force: true });
    await rm(socketPath, { force: true });
  }
}

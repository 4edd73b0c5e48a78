/** Runs the bare servers in `floor_server.ts` as child processes. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { executableOf, runtimeArgs, type RuntimeName } from "../../tools/support/runtimes.ts";
import { RawClient } from "../support/raw_client.ts";
import { withPeer } from "./peer_process.ts";

const SERVER = fileURLToPath(new URL("./floor_server.ts", import.meta.url));

/** A running server. */
export interface Served {
  socketPath: string;
  pid: number;
}

/**
 * Runs a bare server during `use`.
 * @param parent directory for the socket and the file, on the disk under test.
 */
export async function withFloor<T>(
  work: string,
  runtime: RuntimeName,
  parent: string,
  use: (served: Served) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(parent, "floor-"));
  const socketPath = join(folder, "floor.sock");
  const args = [SERVER, work, socketPath, join(folder, "floor.log")];
  const command = [executableOf(runtime)!, ...runtimeArgs(runtime, ["--allow-all"]), ...args];
  const connect = async () => (await RawClient.connect(socketPath)).close();
  return await withPeer(command, connect, (pid) => use({ socketPath, pid }))
    .finally(() => rm(folder, { recursive: true }));
}

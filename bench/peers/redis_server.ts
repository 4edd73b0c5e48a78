/** Redis as a durable log. Each write is synced before its reply. There is no background work. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Connection } from "./connection.ts";
import { findPeer, PeerServer } from "./peer_process.ts";
import { encodeCommand, type RespReply, RespSkimmer } from "./resp.ts";

export const REDIS_INSTALL = "apt-get install redis-server";

export interface Redis {
  socketPath: string;
  pid: number;
}

/** Durable settings: a reply means that the data is on disk. Snapshots and rewrites are off. */
const SETTINGS: Record<string, string> = {
  "port": "0",
  "appendonly": "yes",
  "appendfsync": "always",
  "save": "",
  "auto-aof-rewrite-percentage": "0",
};

export function openRedis(
  { socketPath }: Pick<Redis, "socketPath">,
): Promise<Connection<RespReply>> {
  return Connection.open(socketPath, new RespSkimmer());
}

/** Runs `use` with a new Redis in a temporary directory. */
export async function withRedis<T>(
  parent: string,
  use: (redis: Redis) => Promise<T>,
): Promise<T> {
  const program = findPeer("redis-server");
  if (program === null) throw new Error("redis-server is not installed");
  const folder = await mkdtemp(join(parent, "redis-"));
  try {
    const socketPath = join(folder, "socket");
    const settings = { ...SETTINGS, dir: folder, unixsocket: socketPath };
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    const server = await PeerServer.start(program, args, undefined, async () => {
      const connection = await openRedis({ socketPath });
      await connection.exchange(encodeCommand(["PING"])).finally(() => connection.close());
    });
    try {
      return await use({ socketPath, pid: server.pid });
    } finally {
      await server.stop("SIGTERM");
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

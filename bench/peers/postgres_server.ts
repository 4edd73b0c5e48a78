/**
 * PostgreSQL as a durable log, with the default configuration except for memory and socket. A
 * single cluster is used for a whole run, so that its write-ahead log is recycled as in production.
 * The server runs only while it is measured.
 */
import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Connection } from "./connection.ts";
import {
  findPeer,
  PeerServer,
  runProgram,
  unprivilegedUser,
  type UserIds,
} from "./peer_process.ts";
import { queryMessage, startupMessage, terminateMessage } from "./pg_messages.ts";
import { type PgReply, PgSkimmer } from "./pg_replies.ts";

export const POSTGRES_INSTALL = "apt-get install postgresql";

const DATABASE = "postgres";
export const POSTGRES_USER = "bench";

/** The durability settings have their default values, which are listed for the record. */
const SETTINGS = [
  "fsync=on",
  "synchronous_commit=on",
  "full_page_writes=on",
  "shared_buffers=512MB",
  "listen_addresses=",
];

const TABLE = `CREATE TABLE events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  source text NOT NULL,
  stream text NOT NULL,
  record_key text NOT NULL,
  kind text NOT NULL,
  occurred_at timestamptz,
  observed_at timestamptz NOT NULL DEFAULT now(),
  payload json NOT NULL
)`;

/** A running server with an empty table `events`. */
export interface Postgres {
  socketFolder: string;
  socketPath: string;
  pid: number;
}

/** A cluster whose server is not running. */
export interface PostgresCluster {
  folder: string;
  program: string;
  user: UserIds | undefined;
}

/** Creates a cluster in `parent`, which PostgreSQL's user must be able to access. */
export async function createPostgresCluster(parent: string): Promise<PostgresCluster> {
  const [program, initdb] = [findPeer("postgres"), findPeer("initdb")];
  if (program === null || initdb === null) throw new Error("PostgreSQL is not installed");
  const user = unprivilegedUser();
  const folder = join(parent, "postgres");
  await mkdir(folder, { mode: 0o700 });
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  const options = ["--username", POSTGRES_USER, "--auth", "trust", "--no-locale"];
  const data = join(folder, "data");
  await runProgram(initdb, ["--pgdata", data, "--encoding", "UTF8", "--no-sync", ...options], user);
  return { folder, program, user };
}

/** Opens a session; `onNotification` is called for each NOTIFY. */
export async function openPostgres(
  { socketPath }: Pick<Postgres, "socketPath">,
  onNotification?: () => void,
): Promise<Connection<PgReply>> {
  const connection = await Connection.open(socketPath, new PgSkimmer(onNotification));
  try {
    await connection.exchange(startupMessage(POSTGRES_USER, DATABASE));
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Runs statements in a separate session. */
export async function runSql(
  postgres: Pick<Postgres, "socketPath">,
  sql: string,
): Promise<PgReply> {
  const connection = await openPostgres(postgres);
  try {
    return await connection.exchange(queryMessage(sql));
  } finally {
    connection.close(terminateMessage());
  }
}

/** Runs the server with an empty table during `use`, then stops it cleanly. */
export async function withPostgres<T>(
  { folder, program, user }: PostgresCluster,
  use: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  const socketPath = join(folder, ".s.PGSQL.5432");
  const settings = [...SETTINGS, `unix_socket_directories=${folder}`];
  const args = ["-D", join(folder, "data"), ...settings.flatMap((setting) => ["-c", setting])];
  const server = await PeerServer.start(program, args, user, async () => {
    await runSql({ socketPath }, "SELECT 1");
  });
  try {
    await runSql({ socketPath }, `DROP TABLE IF EXISTS events; ${TABLE}`);
    await runSql({ socketPath }, "CHECKPOINT");
    return await use({ socketFolder: folder, socketPath, pid: server.pid });
  } finally {
    await server.stop("SIGINT");
  }
}

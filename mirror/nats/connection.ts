/** Connects to NATS without automatic reconnects. Each session opens its own connection. */
import {
  AuthorizationError,
  connect as connectNats,
  type ConnectionOptions,
  type NatsConnection,
} from "@nats-io/transport-node";

const CONNECT_TIMEOUT_MS = 5000;
/** A connection counts as lost if the server does not answer any ping for twice this long. */
const PING_INTERVAL_MS = 10_000;

/**
 * @param servers `nats://[user:password@]host[:port]`, or a comma-separated list.
 * @throws {AuthorizationError} if the servers reject the user.
 * @throws {Error} if no server can be reached.
 */
export async function connect(servers: string): Promise<NatsConnection> {
  const options = connectionOptions(servers);
  try {
    return await connectNats(options);
  } catch (error) {
    if (error instanceof AuthorizationError) throw error;
    const { message } = error as Error;
    throw new Error(`${options.servers.join(", ")}: ${message}`, { cause: error });
  }
}

function connectionOptions(servers: string): ConnectionOptions & { servers: string[] } {
  const urls = servers.split(",").map((text) => new URL(text));
  const { username, password } = urls[0]!;
  const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)];
  return {
    servers: urls.map(({ protocol, host }) => `${protocol}//${host}`),
    ...(user !== "" && (pass === "" ? { token: user } : { user, pass })),
    name: "ground-mirror",
    reconnect: false,
    timeout: CONNECT_TIMEOUT_MS,
    pingInterval: PING_INTERVAL_MS,
  };
}

/** Connects to NATS without automatic reconnects. Each session opens its own connection. */
import {
  connect as connectNats,
  type ConnectionOptions,
  type NatsConnection,
} from "@nats-io/transport-node";

const CONNECT_TIMEOUT_MS = 5000;
/** A connection is considered lost if the server answers no ping for twice this long. */
const PING_INTERVAL_MS = 10_000;

/** @param servers `nats://[user:password@]host[:port]`, or a comma-separated list. */
export function connect(servers: string): Promise<NatsConnection> {
  return connectNats(connectionOptions(servers));
}

function connectionOptions(servers: string): ConnectionOptions {
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

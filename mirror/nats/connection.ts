/** Connects to NATS, once: a lost connection ends the session, and the next one connects again. */
import {
  connect as connectNats,
  type ConnectionOptions,
  type NatsConnection,
} from "@nats-io/transport-node";

const CONNECT_TIMEOUT_MS = 5000;
/** A server that answers no ping for twice this long counts as gone. */
const PING_INTERVAL_MS = 10_000;

/** @param servers `nats://[user:password@]host[:port]`, several separated by commas. */
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

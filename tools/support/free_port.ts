/** Ports of this machine for servers that tests start. */
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ranges from which Linux (32768) and macOS (49152) choose ports for connections. */
const PORTS = { from: 20_000, below: 32_000 };
/** Taken ports in a row after which the search ends. */
const TAKEN_MAX = 100;

/** Each process starts at another port and returns none twice. */
let next = PORTS.from + Math.floor(Math.random() * (PORTS.below - PORTS.from));

/**
 * Returns a port of the loopback interface that is free. No connection takes it before the server
 * listens or while the server is down, because systems choose other ports for those.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  for (let taken = 0;; taken += 1) {
    const port = next;
    next = port + 1 < PORTS.below ? port + 1 : PORTS.from;
    try {
      await once(server.listen(port, "127.0.0.1"), "listening");
      server.close();
      await once(server, "close");
      return port;
    } catch (error) {
      if (taken === TAKEN_MAX) throw error;
    }
  }
}

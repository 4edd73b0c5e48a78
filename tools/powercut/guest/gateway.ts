/** Connects the host to the service: `gateway.ts SOCKET`. Port 7000 forwards to the socket. */
import { writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import process from "node:process";
import { pipeline } from "node:stream";

const [socketPath] = process.argv.slice(2) as [string];
// A broken connection closes both sides, and the client on the host retries.
const server = createServer((client) => pipeline(client, connect(socketPath), client, () => {}));
server.listen(7000, "0.0.0.0", () => writeFileSync("/tmp/gateway.loaded", ""));

/**
 * Connects the host to the service: `gateway.ts CONFIG SOCKET`. Port 7000 forwards to the
 * service's socket. A connection to port 7001 runs `verify --chain` and receives its output; the
 * last line is the exit status.
 */
import { writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import process from "node:process";
import { pipeline } from "node:stream";
import { run } from "../../../src/commands/run.ts";
import "../../../src/commands/verify.ts";

const HOST = "0.0.0.0";
const [config, socketPath] = process.argv.slice(2) as [string, string];

function forward(client: Socket): void {
  // A broken connection closes both sides, and the client on the host retries.
  pipeline(client, connect(socketPath), client, () => {});
}

async function verify(socket: Socket): Promise<void> {
  const status = await run(["--config", config, "verify", "--chain"], {
    print: (text) => void socket.write(text),
    report: (line) => void socket.write(`${line}\n`),
    showProgress: () => {},
  });
  socket.end(`exit ${status}\n`);
}

createServer(forward).listen(7000, HOST);
createServer(verify).listen(7001, HOST, () => writeFileSync("/tmp/gateway.loaded", ""));

/**
 * Runs `verify --chain` for each connection and sends its output, whose last line is the exit
 * status: `verify.ts PORT CONFIG`.
 */
import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import process from "node:process";
import { run } from "../../../src/commands/run.ts";
import "../../../src/commands/verify.ts";

const [port, config] = process.argv.slice(2) as [string, string];

async function answer(socket: Socket): Promise<void> {
  const status = await run(["--config", config, "verify", "--chain"], {
    print: (text) => void socket.write(text),
    report: (line) => void socket.write(`${line}\n`),
    showProgress: () => {},
  });
  socket.end(`exit ${status}\n`);
}

const server = createServer((socket) => void answer(socket));
server.listen(Number(port), "0.0.0.0", () => writeFileSync("/tmp/verify.loaded", ""));

/** A follower that fails at any time makes the benchmark fail with the follower's error. */
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Followers } from "../../bench/support/followers.ts";
import { withFolder } from "../../tools/support/program.ts";

const CAUGHT_UP = '{"type":"caught_up","next_after":null,"snapshot_through_event_id":null}\n';
const FOLLOWED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
  `${CAUGHT_UP.length.toString(16)}\r\n${CAUGHT_UP}\r\n`;

/** Runs `use` against a server that answers connection N, counted from 0, with `answerTo(N)`. */
function withAnswers(
  answerTo: (connection: number) => string,
  use: (socketPath: string, sockets: Socket[]) => Promise<void>,
): Promise<void> {
  return withFolder(async (folder) => {
    const socketPath = join(folder, "socket");
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      const connection = sockets.push(socket) - 1;
      socket.on("error", () => {});
      socket.once("data", () => socket.write(answerTo(connection)));
    });
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    try {
      await use(socketPath, sockets);
    } finally {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    }
  });
}

function open(socketPath: string, count: number): Promise<Followers> {
  return Followers.open({ socketPath, count, after: null });
}

test("Followers.failed rejects when an open response ends", () =>
  withAnswers(() => FOLLOWED, async (socketPath, sockets) => {
    const followers = await open(socketPath, 3);
    sockets[1]!.destroy();
    await assert.rejects(followers.failed, /closed a follow response|ECONNRESET|EPIPE/);
    followers.close();
  }));

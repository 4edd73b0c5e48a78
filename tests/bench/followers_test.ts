/** Followers that fail are a failure of the benchmark, with its reason, whenever it comes. */
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Followers } from "../../bench/support/followers.ts";
import { withFolder } from "../../tools/support/program.ts";

const CAUGHT_UP = '{"type":"caught_up","next_after":null,"snapshot_through_event_id":null}\n';
const FOLLOWED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
  `${CAUGHT_UP.length.toString(16)}\r\n${CAUGHT_UP}\r\n`;
const REFUSED = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n";

/** Runs `use` against a server that answers its connections, numbered from 0, as told. */
function withAnswers(
  answer: (connection: number, socket: Socket) => void,
  use: (socketPath: string, sockets: Socket[]) => Promise<void>,
): Promise<void> {
  return withFolder(async (folder) => {
    const socketPath = join(folder, "socket");
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      const connection = sockets.push(socket) - 1;
      socket.on("error", () => {});
      socket.once("data", () => answer(connection, socket));
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
  return Followers.open({ socketPath, count, after: null, receiver: () => () => {} });
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once("close", () => resolve());
  });
}

test("Followers.open() fails when one of them is refused, and leaves none open", () =>
  withAnswers(
    (connection, socket) => socket.write(connection === 70 ? REFUSED : FOLLOWED),
    async (socketPath, sockets) => {
      await assert.rejects(open(socketPath, 100), /follow was refused: HTTP\/1.1 429/);
      assert.equal(sockets.length, 100);
      await Promise.all(sockets.map(closed));
    },
  ));

test("Followers.open() fails when the server hangs up", () =>
  withAnswers(
    (_, socket) => socket.destroy(),
    (socketPath) => assert.rejects(open(socketPath, 3)),
  ));

test("Followers.failed rejects when a response ends later", () =>
  withAnswers(
    (_, socket) => socket.write(FOLLOWED),
    async (socketPath, sockets) => {
      const followers = await open(socketPath, 3);
      sockets[1]!.destroy();
      await assert.rejects(followers.failed, /closed a follow response|ECONNRESET|EPIPE/);
      followers.close();
    },
  ));

test("Followers.failed rejects when what a follower tells is refused", () =>
  withAnswers(
    (_, socket) => socket.write(FOLLOWED),
    async (socketPath, sockets) => {
      const receiver = () => () => {
        throw new Error("not such a record");
      };
      const followers = await Followers.open({ socketPath, count: 1, after: null, receiver });
      const record = '{"type":"events","events":[{"event_id":"1"}]}\n';
      sockets[0]!.write(`${record.length.toString(16)}\r\n${record}\r\n`);
      await assert.rejects(followers.failed, /not such a record/);
      followers.close();
    },
  ));

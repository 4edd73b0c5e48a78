/**
 * Shutdown: pending requests are served, the socket file is removed, and connections are closed,
 * forcibly only if necessary.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { existsSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import type { HttpHandler } from "../../src/http/message.ts";
import { RawConnection } from "../support/raw_client.ts";
import { bodyOf, letServerWork, withHandler } from "../support/test_server.ts";

const HOST = "Host: localhost\r\n";
const PIECE = Buffer.alloc(1024 * 1024);

async function* pieces(count: number): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < count; n++) yield await Promise.resolve(PIECE);
}

/** Responds in the way that the request's path selects. */
const handler: HttpHandler = async (request) => {
  const answer = { status: 200, headers: {}, body: "ok" };
  if (request.target === "/read") await bodyOf(request).catch(() => {});
  if (request.target === "/late") await new Promise(() => {});
  if (request.target === "/stream") return { ...answer, body: pieces(1000) };
  if (request.target === "/endless") return { ...answer, body: pieces(Infinity), isEndless: true };
  return answer;
};

const get = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
const GET = get("/ignore");
const post = (path: string, headers: string, body = "") =>
  `POST ${path} HTTP/1.1\r\n${HOST}${headers}\r\n${body}`;
const LENGTH = "Content-Length: 9\r\n";
const CLOSE = "Connection: close\r\n";
const EXPECT = "Expect: 100-continue\r\n";
const CHUNKED = "Transfer-Encoding: chunked\r\n";

type Client = "reads" | "does not read" | "half-closes";
type End = "gracefully" | "forcibly";

const STATES: Array<[title: string, bytes: string, client: Client, end: End]> = [
  ["without data", "", "does not read", "gracefully"],
  ["before a head", "\r\n", "does not read", "gracefully"],
  ["within a head", "GET / HT", "does not read", "gracefully"],
  ["between requests", GET, "reads", "gracefully"],
  ["within the next head", `${GET}GET`, "reads", "gracefully"],
  ["with a response that is not read", GET, "does not read", "gracefully"],
  ["within a body that is read", post("/read", LENGTH, "ab"), "does not read", "forcibly"],
  ["within a body that was requested", post("/read", EXPECT + LENGTH), "does not read", "forcibly"],
  ["within a discarded body", post("/ignore", LENGTH, "ab"), "reads", "gracefully"],
  ["within a discarded body of the last request", post("/", CLOSE + LENGTH), "reads", "gracefully"],
  ["after the last response", get("/ignore", CLOSE), "reads", "gracefully"],
  ["after a rejected request", "no request\r\n\r\n", "reads", "gracefully"],
  ["after a malformed body", post("/read", CHUNKED, "zz\r\n"), "does not read", "gracefully"],
  ["with a pending response", get("/late"), "does not read", "forcibly"],
  ["with a response to a half-closed client", get("/late"), "half-closes", "forcibly"],
  ["with pipelined requests", get("/late") + GET.repeat(10_000), "does not read", "forcibly"],
  ["with a streamed response that is not read", get("/stream"), "does not read", "forcibly"],
  ["with an endless response that is not read", get("/endless"), "does not read", "forcibly"],
];

for (const [title, bytes, client, end] of STATES) {
  test(`HttpServer.close() ends a connection ${title} ${end}`, () =>
    withHandler(handler, async ({ socketPath, server, reports }) => {
      const connection = await RawConnection.open(socketPath);
      if (client !== "reads") connection.pause();
      void connection.write(bytes);
      if (client === "half-closes") connection.endInput();
      if (client === "reads") await connection.readResponse();
      await letServerWork(socketPath, 5);
      await server.close();
      assert.equal(reports.length, end === "forcibly" ? 1 : 0, reports.join());
      connection.resume();
      await connection.ended();
    }, { shutdownGraceMs: end === "forcibly" ? 30 : 60_000 }));
}

test("HttpServer.close() keeps a socket that another process created at its path", async () => {
  await withHandler(handler, async ({ socketPath, server }) => {
    unlinkSync(socketPath);
    const other = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => other.listen(socketPath, resolve));
    await server.close();
    assert.ok(existsSync(socketPath));
    const connection = await RawConnection.open(socketPath);
    await connection.ended();
    await new Promise((resolve) => other.close(resolve));
  });
});

test("HttpServer.close() reports that it cannot put back a socket, and closes", async () => {
  const [asked, answering] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const late: HttpHandler = async (request) => {
    asked.resolve();
    await answering.promise;
    return await handler(request);
  };
  await withHandler(late, async ({ socketPath, server, reports }) => {
    const connection = await RawConnection.open(socketPath, GET);
    await asked.promise;
    unlinkSync(socketPath);
    writeFileSync(socketPath, "");
    const closed = server.close();
    unlinkSync(`${socketPath}.kept`);
    answering.resolve();
    assert.equal((await connection.readResponse())?.status, 200);
    await closed;
    assert.match(reports.join("\n"), /s\.sock: cannot be put back: ENOENT/);
  });
});

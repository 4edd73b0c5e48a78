/** A shutdown with a connection in each of its states: it ends, by force only if necessary. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { HttpHandler } from "../../src/http/message.ts";
import { exchange, RawConnection } from "../support/raw_client.ts";
import { withHandler } from "../support/test_server.ts";

const HOST = "Host: a\r\n";
const GET = `GET /ignore HTTP/1.1\r\n${HOST}\r\n`;
const PIECE = Buffer.alloc(1024 * 1024);

/** Responds as the path of the request says. */
const handler: HttpHandler = async (request) => {
  const answer = { status: 200, headers: {}, body: "ok" };
  if (request.target === "/read") await request.bytes().catch(() => {});
  if (request.target === "/late") await new Promise(() => {});
  if (request.target === "/stream") return { ...answer, body: pieces(1000) };
  if (request.target === "/endless") return { ...answer, body: pieces(Infinity), isEndless: true };
  return answer;
};

async function* pieces(count: number): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < count; n++) yield await Promise.resolve(PIECE);
}

interface State {
  title: string;
  bytes: string;
  endsInput?: boolean;
  /** Whether the client reads its responses before the shutdown. */
  reads?: boolean;
  isCutOff: boolean;
}

const STATES: State[] = [
  { title: "new", bytes: "", isCutOff: false },
  { title: "in front of a head", bytes: "\r\n", isCutOff: false },
  { title: "within a head", bytes: "GET / HT", isCutOff: false },
  { title: "between requests", bytes: GET, reads: true, isCutOff: false },
  { title: "within the next head", bytes: `${GET}GET`, reads: true, isCutOff: false },
  { title: "with an answer that nobody takes", bytes: GET, isCutOff: false },
  {
    title: "within a body that is read",
    bytes: `POST /read HTTP/1.1\r\n${HOST}Content-Length: 9\r\n\r\nab`,
    isCutOff: true,
  },
  {
    title: "within a body that is asked for",
    bytes: `POST /read HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`,
    isCutOff: true,
  },
  {
    title: "within a body that is dropped",
    bytes: `POST /ignore HTTP/1.1\r\n${HOST}Content-Length: 9\r\n\r\nab`,
    reads: true,
    isCutOff: true,
  },
  {
    title: "within a body that is dropped, behind the last answer",
    bytes: `POST /ignore HTTP/1.1\r\n${HOST}Connection: close\r\nContent-Length: 9\r\n\r\nab`,
    reads: true,
    isCutOff: false,
  },
  {
    title: "behind the last answer",
    bytes: `GET /ignore HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`,
    reads: true,
    isCutOff: false,
  },
  { title: "behind a refusal", bytes: "no request\r\n\r\n", reads: true, isCutOff: false },
  {
    title: "behind a broken body",
    bytes: `POST /read HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    isCutOff: false,
  },
  { title: "with an answer to come", bytes: GET.replace("ignore", "late"), isCutOff: true },
  {
    title: "with an answer to come, its client's side ended",
    bytes: GET.replace("ignore", "late"),
    endsInput: true,
    isCutOff: true,
  },
  {
    title: "with requests behind the one under way",
    bytes: GET.replace("ignore", "late") + GET.repeat(10_000),
    isCutOff: true,
  },
  {
    title: "with an answer that is streamed and not taken",
    bytes: GET.replace("ignore", "stream"),
    isCutOff: true,
  },
  {
    title: "with an endless answer that is not taken",
    bytes: GET.replace("ignore", "endless"),
    isCutOff: true,
  },
];

for (const { title, bytes, endsInput, reads, isCutOff } of STATES) {
  test(`HttpServer.close() ends a connection ${title}${isCutOff ? ", by force" : ""}`, () =>
    withHandler(handler, async ({ socketPath, server, reports }) => {
      const connection = await RawConnection.open(socketPath);
      if (!reads) connection.pause();
      void connection.write(bytes);
      if (endsInput) connection.endInput();
      if (reads) await connection.readResponse();
      // A later response shows that the server has read it.
      for (let n = 0; n < 5; n++) (await exchange(socketPath, GET)).connection.destroy();
      await server.close();
      assert.equal(reports.length, isCutOff ? 1 : 0, reports.join());
      connection.resume();
      await connection.ended();
    }, { shutdownGraceMs: isCutOff ? 30 : 60_000 }));
}

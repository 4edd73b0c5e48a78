/** Connections that stay open or are closed, and requests that are split across reads. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { type HttpHandler, MalformedRequestError } from "../../src/http/message.ts";
import { DRAIN_BYTES_MAX } from "../../src/limits.ts";
import { RawConnection } from "../support/raw_client.ts";
import { bodyOf, letServerWork, withHandler } from "../support/test_server.ts";

const HOST = "Host: localhost\r\n";
const GET = `GET / HTTP/1.1\r\n${HOST}\r\n`;

/** Responds with the request's body. */
const echo: HttpHandler = async (request) => {
  return { status: 200, headers: {}, body: `${request.method} ${await bodyOf(request)}` };
};

/** Responds without reading the request's body. */
const ignore: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: "ignored" });

/** Requests whose heads differ in little, short ones that are kept and a long one that is not. */
const SIMILAR: readonly [bytes: string, method: string, body: string][] = ["a", "a".repeat(2000)]
  .flatMap((value) =>
    ["GET", "POST", "HEAD"].flatMap((method) =>
      ["", "b", "bc"].map((body): [string, string, string] => [
        `${method} /${value} HTTP/1.1\r\n${HOST}Content-Length: ${body.length}\r\n\r\n${body}`,
        method,
        method === "HEAD" ? "" : `${method} ${value.length} ${body}`,
      ])
    )
  );

test("a connection takes each head as it is, whichever heads were before it", () =>
  withHandler(
    async (request) => {
      const body = `${request.method} ${request.target.length - 1} ${await bodyOf(request)}`;
      return { status: 200, headers: {}, body: request.method === "HEAD" ? "" : body };
    },
    async ({ socketPath }) => {
      const connection = await RawConnection.open(socketPath);
      // Every request before and after every other one, and before and after itself.
      const all = SIMILAR.flatMap((first) => SIMILAR.flatMap((second) => [first, second]));
      await connection.write(`${all.map(([bytes]) => bytes).join("")}${GET}G@T\r\n\r\n${GET}`);
      for (const [, method, body] of all) {
        const response = await connection.readResponse(method);
        assert.deepEqual([response?.status, response?.body], [200, body]);
      }
      assert.equal((await connection.readResponse())?.status, 200);
      assert.equal((await connection.readResponse())?.status, 400);
      assert.equal(await connection.readResponse(), null);
    },
  ));

const EXPECTING = `POST / HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`;

test("a client that expects 100 Continue need not send its body after an early response", () =>
  withHandler(ignore, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath, EXPECTING);
    const response = await connection.readResponse();
    assert.equal(response?.body, "ignored");
    assert.equal(response?.headers.connection, "close");
    await connection.ended();
  }));

test("an unfinished request head times out, and an idle connection stays open", () =>
  withHandler(echo, async ({ socketPath }) => {
    const fresh = await RawConnection.open(socketPath);
    const served = await RawConnection.open(socketPath, GET);
    await served.readResponse();
    // Regression: a client that had sent an empty line was treated as having begun a request.
    const begun = await RawConnection.open(socketPath);
    const emptyLine = await RawConnection.open(socketPath, "\r");
    await letServerWork(socketPath, 1);
    await emptyLine.write("\n");
    await begun.write("GET / HT");
    await begun.ended();
    for (const idle of [fresh, served, emptyLine]) {
      await idle.write(GET);
      assert.equal((await idle.readResponse())?.status, 200);
      idle.destroy();
    }
  }, { headersTimeoutMs: 50 }));

/** Sends pieces so that each arrives in its own read. */
async function writeApart(socketPath: string, connection: RawConnection, pieces: Iterable<string>) {
  for (const piece of pieces) {
    await connection.write(piece);
    await letServerWork(socketPath, 1);
  }
}

/**
 * Regressions: an empty line before a request was skipped only if it arrived in one read. A head
 * was rejected if one read ended right after a line and the next read did not complete the head.
 */
test("an empty line before a request is skipped, however its bytes are split", () =>
  withHandler(echo, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    for (const pieces of [["\r", "\n\r", "\n", "\r\n\r", `\n${GET}`], GET]) {
      for (let n = 0; n < 2; n++) {
        await writeApart(socketPath, connection, pieces);
        assert.equal((await connection.readResponse())?.status, 200);
      }
    }
    connection.destroy();
  }));

const MISPLACED: Array<[title: string, pieces: string[]]> = [
  ["a CR without LF", ["GET / HTTP/1.1\r", "a"]],
  ["an LF without CR", ["GET / HTTP/1.1", "\n"]],
  ["a second LF", ["GET / HTTP/1.1\r\n", "\n"]],
];

for (const [title, pieces] of MISPLACED) {
  test(`${title} is rejected as soon as it arrives, however the head is split`, () =>
    withHandler(echo, async ({ socketPath }) => {
      const connection = await RawConnection.open(socketPath);
      await writeApart(socketPath, connection, pieces);
      assert.equal((await connection.readResponse())?.status, 400);
      connection.destroy();
    }));
}

const BROKEN: Record<string, string> = {
  "an invalid size": "zz\r\n",
  "an overlong chunk": "1\r\nab\r\n",
  "a size line without its CR": "1\na\r\n",
};

/**
 * Regression: if a chunked body had a malformed line and its reader was slow, later bytes were
 * decoded as if the line were absent, and the request was executed.
 */
for (const [title, broken] of Object.entries(BROKEN)) {
  test(`a body with ${title} stays invalid, whatever bytes follow`, () => {
    const [entered, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const outcome = Promise.withResolvers<unknown>();
    const handler: HttpHandler = async (request) => {
      entered.resolve();
      await gate.promise;
      await bodyOf(request).then(outcome.resolve, outcome.resolve);
      return { status: 400, headers: {}, body: "broken" };
    };
    return withHandler(handler, async ({ socketPath }) => {
      const connection = await RawConnection.open(socketPath);
      await connection.write(
        `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${broken}`,
      );
      await entered.promise;
      await connection.write("2\r\n{}\r\n0\r\n\r\n");
      await letServerWork(socketPath, 3);
      gate.resolve();
      assert.ok(await outcome.promise instanceof MalformedRequestError);
      const response = await connection.readResponse();
      assert.equal(response?.headers.connection, "close");
      await connection.ended();
    });
  });
}

test("an endless body is read only up to a limit", () =>
  withHandler(ignore, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(`POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = Buffer.from(`100000\r\n${"a".repeat(0x100000)}\r\n`);
    let sentBytes = 0;
    while (connection.error === null && sentBytes < 4 * DRAIN_BYTES_MAX) {
      await connection.write(chunk);
      sentBytes += chunk.length;
    }
    await connection.ended();
    assert.ok(sentBytes < 2 * DRAIN_BYTES_MAX, `${sentBytes} bytes were accepted`);
  }));

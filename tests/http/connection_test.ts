/** Which connections stay open, are refused and are closed. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { HttpHandler } from "../../src/http/message.ts";
import { HEADER_BYTES_MAX } from "../../src/limits.ts";
import { Gate } from "../support/gate.ts";
import { exchange, RawConnection } from "../support/raw_client.ts";
import { withHandler } from "../support/test_server.ts";

const HOST = "Host: localhost\r\n";
const GET = `GET / HTTP/1.1\r\n${HOST}\r\n`;

/** Responds with the body. */
const echo: HttpHandler = async (request) => {
  const body = Buffer.from(await request.bytes()).toString();
  return { status: 200, headers: {}, body: `${request.method} ${body}` };
};

/** Responds without reading the body. */
const ignore: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: "ignored" });

const MALFORMED: Array<[title: string, bytes: string]> = [
  ["no HTTP", "hello there\r\n\r\n"],
  ["a greeting of TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["lines that end with LF alone", "GET / HTTP/1.1\nHost: a\n\n"],
  ["an unfinished head with a NUL", "GET / HTTP/1.1\r\nHost: \0"],
  ["an unfinished head without end", "X".repeat(HEADER_BYTES_MAX + 1)],
];

for (const [title, bytes] of MALFORMED) {
  test(`a connection with ${title} gets 400 and is closed`, () =>
    withHandler(echo, async ({ socketPath, reports }) => {
      const { response, connection } = await exchange(socketPath, Buffer.from(bytes, "latin1"));
      assert.equal(response?.status, 400);
      assert.equal(JSON.parse(response!.body).error, "invalid_request");
      assert.equal(response?.headers.connection, "close");
      await connection.ended();
      assert.deepEqual(reports, []);
    }));
}

test("a request before a malformed one is answered", () =>
  withHandler(echo, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(`${GET}hello there\r\n\r\n${GET}`);
    assert.equal((await connection.readResponse())?.status, 200);
    assert.equal((await connection.readResponse())?.status, 400);
    assert.equal(await connection.readResponse(), null);
  }));

test("a client that half-closes gets all its responses", () =>
  withHandler(echo, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(GET + `POST / HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\nab${GET}`);
    connection.endInput();
    const bodies: string[] = [];
    for (let n = 0; n < 3; n++) bodies.push((await connection.readResponse())!.body);
    assert.deepEqual(bodies, ["GET ", "POST ab", "GET "]);
    await connection.ended();
    assert.equal(connection.error, null);
  }));

test("an HTTP/1.0 client gets its response until the connection closes", () => {
  async function* body() {
    yield await Promise.resolve(Buffer.from("one "));
    yield Buffer.from("two");
  }
  const handler: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: body() });
  return withHandler(handler, async ({ socketPath }) => {
    const { response, connection } = await exchange(socketPath, "GET / HTTP/1.0\r\n\r\n");
    assert.equal(response?.headers["transfer-encoding"], undefined);
    assert.equal(response?.body, "one two");
    await connection.ended();
  });
});

const EXPECTING = `POST / HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`;

test("a client that expects 100 Continue gets it when its body is requested", () =>
  withHandler(echo, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(EXPECTING);
    await connection.receive("HTTP/1.1 100 Continue\r\n\r\n".length);
    await connection.write("ab");
    assert.equal((await connection.readResponse())?.body, "POST ab");
    await connection.write(GET);
    assert.equal((await connection.readResponse())?.body, "GET ");
    connection.destroy();
  }));

test("a refused client that expects 100 Continue need not send its body", () =>
  withHandler(ignore, async ({ socketPath }) => {
    const { response, connection } = await exchange(socketPath, EXPECTING);
    assert.equal(response?.body, "ignored");
    assert.equal(response?.headers.connection, "close");
    await connection.ended();
  }));

test("a head that does not end times out", () =>
  withHandler(echo, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write("GET / HT");
    await connection.ended();
  }, { headersTimeoutMs: 20 }));

test("an idle connection stays open", () =>
  withHandler(echo, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(GET);
    await connection.readResponse();
    const begun = await RawConnection.open(socketPath);
    await begun.write("GET / HT");
    await begun.ended();
    await connection.write(GET);
    assert.equal((await connection.readResponse())?.status, 200);
    connection.destroy();
  }, { headersTimeoutMs: 20 }));

test("pipelined requests beyond a limit stay unread", () => {
  const [entered, gate] = [new Gate(), new Gate()];
  const handler: HttpHandler = async () => {
    entered.open();
    await gate.opened;
    return { status: 200, headers: {}, body: "ok" };
  };
  return withHandler(handler, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    const requests = GET.repeat(100_000);
    let isTaken = false;
    const written = connection.write(requests).then(() => isTaken = true);
    await entered.opened;
    // The server has read all it will read.
    for (let n = 0; n < 20; n++) {
      const other = await exchange(socketPath, "hello\r\n\r\n");
      other.connection.destroy();
    }
    assert.ok(!isTaken);
    gate.open();
    await written;
    connection.destroy();
  });
});

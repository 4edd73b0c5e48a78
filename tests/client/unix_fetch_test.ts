/** `unixFetch()` against servers on a Unix socket. The client's tests cover typical requests. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createRawServer, type Server } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setImmediate } from "node:timers";
import { type Fetch, unixFetch } from "../../src/client/unix_fetch.ts";
import { SOCKET_PATH_BYTES_MAX } from "../../src/socket_path.ts";
import { withFolder } from "../../tools/support/program.ts";
import { withListening } from "./support/fake_service.ts";

type Use = (fetch: Fetch, connections: () => number) => Promise<void>;

function withServer(listener: RequestListener, use: Use): Promise<void> {
  return withFetch(createServer(listener), use);
}

/** Runs `use` with a server that sends `answer` on each connection, then closes the connection. */
function withRawServer(answer: string, use: Use): Promise<void> {
  const server = createRawServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(answer));
  });
  return withFetch(server, use);
}

function withFetch(server: Server, use: Use): Promise<void> {
  return withListening(server, (path, connections) => use(unixFetch(path), connections));
}

const echo: RequestListener = async (request, response) => {
  const { method, url, headers } = request;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ method, url, headers, body: await text(request) }));
};

test("unixFetch() sends the method, target, headers and body, and returns a Response", async () => {
  await withServer(echo, async (fetch) => {
    const response = await fetch("http://anything:99/v1/events?limit=2&kind=a%20b", {
      method: "POST",
      headers: { "Content-Type": "application/json", "Authorization": "Bearer t" },
      body: '{"ä":1}',
    });
    assert(response instanceof Response);
    assert.equal(response.headers.get("content-type"), "application/json");
    const seen = await response.json();
    assert.equal(seen.method, "POST");
    assert.equal(seen.url, "/v1/events?limit=2&kind=a%20b");
    assert.equal(seen.headers["content-length"], "8");
    assert.equal(seen.headers["authorization"], "Bearer t");
    assert.equal(seen.body, '{"ä":1}');
    assert.equal((await (await fetch(new URL("http://host/a"))).json()).url, "/a");
    assert.equal((await (await fetch("/b?c")).json()).url, "/b?c");
    const request = new Request("http://host/d", { method: "POST", body: "abc" });
    assert.equal((await (await fetch(request)).json()).body, "abc");
  });
});

const BODIES: Record<string, RequestInit> = {
  "bytes": { body: new TextEncoder().encode("abc") },
  "a Blob": { body: new Blob(["abc"]) },
  "a stream": { body: new Blob(["abc"]).stream(), duplex: "half" } as RequestInit,
  "a string with another Content-Length": { body: "abc", headers: { "content-length": "2" } },
};

test("unixFetch() sends bodies with their Content-Length", async () => {
  await withServer(echo, async (fetch) => {
    for (const [name, init] of Object.entries(BODIES)) {
      const seen = await (await fetch("/", { method: "POST", ...init })).json();
      assert.deepEqual([seen.body, seen.headers["content-length"]], ["abc", "3"], name);
    }
  });
});

test("unixFetch() returns no body for HEAD and 204, and reuses the connection", async () => {
  await withServer((request, response) => {
    if (request.method === "HEAD") response.writeHead(200, { "content-length": "9" });
    else response.writeHead(204);
    response.end();
  }, async (fetch, connections) => {
    for (const [method, status] of [["HEAD", 200], ["GET", 204]] as const) {
      const response = await fetch("/", { method });
      assert.deepEqual([response.status, response.body], [status, null]);
    }
    assert.equal(connections(), 1);
  });
});

const MISTAKEN_PATHS: [path: unknown, fault: string][] = [
  ["", "0 bytes"],
  [undefined, "undefined"],
  [null, "object"],
  [new URL("file:///s.sock"), "object"],
  [80, "number"],
  ["a\0b", "3 bytes"],
  ["http://127.0.0.1:80", "a URL"],
  ["HTTPS://user:secret@host/", "a URL"],
  ["unix:/run/s.sock", "a URL"],
  ["http+unix://s.sock/", "a URL"],
  ["s".repeat(SOCKET_PATH_BYTES_MAX + 1), `${SOCKET_PATH_BYTES_MAX + 1} bytes`],
  ["é".repeat(SOCKET_PATH_BYTES_MAX / 2 + 1), `${SOCKET_PATH_BYTES_MAX + 1} bytes`],
];
for (const [path, fault] of MISTAKEN_PATHS) {
  // Regression: an empty path connected to TCP port 80 of 127.0.0.1.
  test(`unixFetch() rejects the path ${JSON.stringify(path)?.slice(0, 40)} at once`, () => {
    assert.throws(() => unixFetch(path as string), (error) => {
      assert(error instanceof TypeError);
      assert.match(
        error.message,
        /^unixFetch\(\) expects the path of a Unix socket, 1 to 1\d\d bytes/,
      );
      return error.message.endsWith(`but got ${fault}`);
    });
  });
}

test("unixFetch() connects to a path of the greatest length", async () => {
  await withFolder(async (folder) => {
    const path = join(folder, "s".repeat(SOCKET_PATH_BYTES_MAX - folder.length - 1));
    await assert.rejects(unixFetch(path)("/"), /ENOENT/);
    const server = createServer(echo);
    await once(server.listen(path), "listening");
    assert.equal((await unixFetch(path)("/")).status, 200);
    server.closeAllConnections();
    await once(server.close(), "close");
  });
});

test("unixFetch() rejects with the error from a request body", async () => {
  const reason = new Error("source is gone");
  const body = new ReadableStream({ pull: (controller) => controller.error(reason) });
  await withServer(echo, async (fetch) => {
    const init = { method: "POST", body, duplex: "half" } as RequestInit;
    await assert.rejects(fetch("/", init), reason);
  });
});

test("unixFetch() resolves when a response arrives before the body is sent", async () => {
  await withServer((request, response) => {
    response.writeHead(413).end("too large");
    request.resume();
  }, async (fetch) => {
    const response = await fetch("/", { method: "POST", body: new Uint8Array(30_000_000) });
    assert.equal(response.status, 413);
    assert.equal(await response.text(), "too large");
  });
});

function isFailure(error: unknown): boolean {
  return error instanceof TypeError && error.cause !== undefined;
}

const BROKEN_ANSWERS: [string, string][] = [
  ["nothing", ""],
  ["part of a head", "HTTP/1.1 200 OK\r\ncontent-le"],
  ["something other than HTTP", "hello\r\n\r\n"],
  ["a status that Response rejects", "HTTP/1.1 999 ?\r\ncontent-length: 0\r\n\r\n"],
];
for (const [name, answer] of BROKEN_ANSWERS) {
  test(`unixFetch() rejects with a TypeError when the server sends ${name}`, async () => {
    await withRawServer(answer, (fetch) => assert.rejects(fetch("/"), isFailure));
  });
}

const CUT_BODIES: [string, string][] = [
  ["a declared length", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"],
  ["chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"],
];
for (const [name, answer] of CUT_BODIES) {
  test(`unixFetch() fails the body when the connection ends within ${name}`, async () => {
    await withRawServer(answer, async (fetch) => {
      const response = await fetch("/");
      assert.equal(response.status, 200);
      await assert.rejects(response.text(), isFailure);
    });
  });
}

test("unixFetch() reconnects after the server has closed an idle connection", async () => {
  await withRawServer("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na", async (fetch) => {
    assert.equal(await (await fetch("/")).text(), "a");
    // The client sees the connection close in a later turn of the event loop.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    assert.equal(await (await fetch("/")).text(), "a");
  });
});

test("unixFetch() rejects the arguments that fetch() rejects", async () => {
  const fetch = unixFetch("/nowhere");
  await assert.rejects(fetch("/", { body: "a GET has no body" }), TypeError);
  await assert.rejects(fetch("http://"), TypeError);
  await assert.rejects(fetch("/", { headers: { "bad name": "x" } }), TypeError);
  await assert.rejects(fetch("/"), /connection to \/nowhere failed: .*ENOENT/);
});

/** Number of runs of each case. The moment at which a request connects varies between runs. */
const REPEATS = 20;

const MOMENTS: Record<string, (abort: () => void) => void> = {
  "at once": (abort) => abort(),
  "in a microtask": (abort) => void Promise.resolve().then(abort),
  "in the next turn": (abort) => void setImmediate(abort),
  "two turns later": (abort) => void setImmediate(() => setImmediate(abort)),
};

// Regression: an abort was missed while the body was being collected and, on Deno, sometimes while
// the request was connecting, so a request aborted at that point could continue forever.
for (const [name, moment] of Object.entries(MOMENTS)) {
  for (const [method, init] of Object.entries({ GET: {}, POST: { method: "POST", body: "x" } })) {
    test(`unixFetch() aborts a ${method} request whose signal is aborted ${name}`, async () => {
      const endless: RequestListener = (_, response) => void response.write("more to come\n");
      await withServer(endless, async (fetch) => {
        for (let repeat = 0; repeat < REPEATS; repeat++) {
          const controller = new AbortController();
          const reading = fetch("/", { ...init, signal: controller.signal })
            .then((response) => response.text());
          moment(() => controller.abort("given up"));
          assert.equal(await reading.catch((reason) => reason), "given up");
        }
      });
    });
  }
}

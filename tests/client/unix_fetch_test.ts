/** `unixFetch()` against a plain `node:http` server on a Unix socket, fault by fault. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createRawServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CLIENT_SOCKETS_MAX, type Fetch, unixFetch } from "../../src/client/unix_fetch.ts";

/** Runs `use` with a socket path in a temporary folder. */
async function withSocketPath(use: (socketPath: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "unix-fetch-"));
  try {
    await use(join(folder, "s.sock"));
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function withServer(
  listener: RequestListener,
  use: (fetch: Fetch, connections: () => number) => Promise<void>,
): Promise<void> {
  await withSocketPath(async (socketPath) => {
    let connections = 0;
    const server = createServer(listener).on("connection", () => connections++);
    await once(server.listen(socketPath), "listening");
    try {
      await use(unixFetch(socketPath), () => connections);
    } finally {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    }
  });
}

/** A server that sends given bytes on every connection. */
async function withRawServer(
  onConnection: (socket: Socket) => void,
  use: (fetch: Fetch) => Promise<void>,
): Promise<void> {
  await withSocketPath(async (socketPath) => {
    const sockets = new Set<Socket>();
    const server = createRawServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      onConnection(socket);
    });
    await once(server.listen(socketPath), "listening");
    try {
      await use(unixFetch(socketPath));
    } finally {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    }
  });
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const echo: RequestListener = async (request, response) => {
  const body = await readAll(request);
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({
    method: request.method,
    url: request.url,
    headers: request.headers,
    body: body.toString("utf8"),
  }));
};

test("unixFetch() sends method, target, headers and body, and returns a Response", async () => {
  await withServer(echo, async (fetch) => {
    const response = await fetch("http://anything:99/v1/events?limit=2&kind=a%20b", {
      method: "POST",
      headers: { "Content-Type": "application/json", "Authorization": "Bearer t" },
      body: '{"ä":1}',
    });
    assert(response instanceof Response);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/json");
    const seen = await response.json();
    assert.equal(seen.method, "POST");
    assert.equal(seen.url, "/v1/events?limit=2&kind=a%20b");
    assert.equal(seen.headers["content-length"], "8");
    assert.equal(seen.headers["authorization"], "Bearer t");
    assert.equal(seen.body, '{"ä":1}');
  });
});

const BODIES: [string, () => Pick<RequestInit, "body">, string | undefined][] = [
  ["text", () => ({ body: "abc" }), "3"],
  ["bytes", () => ({ body: new TextEncoder().encode("abc") }), "3"],
  ["a Blob", () => ({ body: new Blob(["abc"]) }), "3"],
  ["a stream", () => ({ body: new Blob(["abc"]).stream(), duplex: "half" }), undefined],
];
for (const [name, makeInit, contentLength] of BODIES) {
  test(`unixFetch() sends a body given as ${name}`, async () => {
    await withServer(echo, async (fetch) => {
      const seen = await (await fetch("/", { method: "POST", ...makeInit() })).json();
      assert.equal(seen.body, "abc");
      assert.equal(seen.headers["content-length"], contentLength);
    });
  });
}

test("unixFetch() accepts a URL, a path and a Request", async () => {
  await withServer(echo, async (fetch) => {
    assert.equal((await (await fetch(new URL("http://host/a"))).json()).url, "/a");
    assert.equal((await (await fetch("/b?c")).json()).url, "/b?c");
    const request = new Request("http://host/d", { method: "POST", body: "abc" });
    const seen = await (await fetch(request)).json();
    assert.deepEqual([seen.method, seen.url, seen.body], ["POST", "/d", "abc"]);
  });
});

test("unixFetch() keeps the status and the headers of an error response", async () => {
  await withServer((_, response) => {
    response.writeHead(429, { "retry-after": "1" }).end('{"error":"overloaded"}');
  }, async (fetch) => {
    const response = await fetch("/");
    assert.equal(response.status, 429);
    assert(!response.ok);
    assert.equal(response.headers.get("retry-after"), "1");
    assert.equal((await response.json()).error, "overloaded");
  });
});

test("unixFetch() returns no body for HEAD and 204", async () => {
  await withServer((request, response) => {
    if (request.method === "HEAD") response.writeHead(200, { "content-length": "9" });
    else response.writeHead(204);
    response.end();
  }, async (fetch, connections) => {
    for (const [method, status] of [["HEAD", 200], ["GET", 204]] as const) {
      const response = await fetch("/", { method });
      assert.equal(response.status, status);
      assert.equal(response.body, null);
    }
    assert.equal(connections(), 1);
  });
});

test("unixFetch() reuses a connection", async () => {
  await withServer(echo, async (fetch, connections) => {
    for (let round = 0; round < 5; round++) await (await fetch("/")).text();
    assert.equal(connections(), 1);
  });
});

test("unixFetch() limits its connections", async () => {
  await withServer(echo, async (fetch, connections) => {
    const requests = Array.from({ length: CLIENT_SOCKETS_MAX * 2 }, () => fetch("/"));
    for (const response of await Promise.all(requests.map(async (r) => (await r).text()))) {
      assert.match(response, /"method":"GET"/);
    }
    assert(connections() <= CLIENT_SOCKETS_MAX);
  });
});

test("unixFetch() streams a response", async () => {
  let finish = () => {};
  await withServer((_, response) => {
    response.write("first");
    finish = () => response.end("second");
  }, async (fetch) => {
    const response = await fetch("/");
    const reader = response.body!.getReader();
    assert.equal(new TextDecoder().decode((await reader.read()).value), "first");
    finish();
    assert.equal(new TextDecoder().decode((await reader.read()).value), "second");
    assert((await reader.read()).done);
  });
});

test("unixFetch() streams a request body", async () => {
  const firstChunk = Promise.withResolvers<string>();
  await withServer((request, response) => {
    request.once("data", (chunk) => firstChunk.resolve(String(chunk)));
    request.on("end", () => response.end("done"));
  }, async (fetch) => {
    let feed: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        feed = controller;
      },
    });
    const responding = fetch("/", { method: "POST", body, duplex: "half" } as RequestInit);
    feed!.enqueue(new TextEncoder().encode("one"));
    assert.equal(await firstChunk.promise, "one");
    feed!.close();
    assert.equal(await (await responding).text(), "done");
  });
});

test("unixFetch() resolves with a response that arrives before the body is sent", async () => {
  await withServer((request, response) => {
    response.writeHead(413).end("too large");
    request.resume();
  }, async (fetch) => {
    const response = await fetch("/", { method: "POST", body: new Uint8Array(30_000_000) });
    assert.equal(response.status, 413);
    assert.equal(await response.text(), "too large");
  });
});

test("unixFetch() rejects with a TypeError and its cause when no one listens", async () => {
  await withSocketPath(async (socketPath) => {
    await assert.rejects(unixFetch(socketPath)("/"), (error: unknown) => {
      assert(error instanceof TypeError);
      assert.match(error.message, new RegExp(socketPath));
      assert.equal((error.cause as { code?: string }).code, "ENOENT");
      return true;
    });
  });
});

const BROKEN_ANSWERS: [string, string][] = [
  ["nothing", ""],
  ["half a head", "HTTP/1.1 200 OK\r\ncontent-le"],
  ["no HTTP", "hello\r\n\r\n"],
  ["a status no Response can have", "HTTP/1.1 999 ?\r\ncontent-length: 0\r\n\r\n"],
];
for (const [name, answer] of BROKEN_ANSWERS) {
  test(`unixFetch() rejects with a TypeError when the server answers ${name}`, async () => {
    await withRawServer((socket) => {
      socket.once("data", () => socket.end(answer));
    }, async (fetch) => {
      await assert.rejects(
        fetch("/"),
        (error: unknown) => error instanceof TypeError && error.cause !== undefined,
      );
    });
  });
}

const CUT_BODIES: [string, string][] = [
  ["a declared length", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"],
  ["chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"],
];
for (const [name, answer] of CUT_BODIES) {
  test(`unixFetch() errors the body when the connection ends within ${name}`, async () => {
    await withRawServer((socket) => {
      socket.once("data", () => socket.end(answer));
    }, async (fetch) => {
      const response = await fetch("/");
      assert.equal(response.status, 200);
      await assert.rejects(
        response.text(),
        (error: unknown) => error instanceof TypeError && error.cause !== undefined,
      );
    });
  });
}

test("unixFetch() works again after the server has closed an idle connection", async () => {
  await withRawServer((socket) => {
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na"));
    socket.once("data", () => socket.end());
  }, async (fetch) => {
    assert.equal(await (await fetch("/")).text(), "a");
    // The client sees the end of the connection in a later turn of the event loop.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    assert.equal(await (await fetch("/")).text(), "a");
  });
});

test("unixFetch() rejects with the reason of a signal that is already aborted", async () => {
  await withServer(echo, async (fetch, connections) => {
    const reason = new Error("not needed any more");
    await assert.rejects(fetch("/", { signal: AbortSignal.abort(reason) }), reason);
    assert.equal(connections(), 0);
  });
});

test("unixFetch() stops waiting for a response when its signal is aborted", async () => {
  const abort = new AbortController();
  const reason = new Error("took too long");
  const serverSawClose = Promise.withResolvers<void>();
  await withServer((_, response) => {
    response.once("close", () => serverSawClose.resolve());
    abort.abort(reason);
  }, async (fetch) => {
    await assert.rejects(fetch("/", { signal: abort.signal }), reason);
    await serverSawClose.promise;
  });
});

test("unixFetch() errors the body with the reason of a signal aborted within it", async () => {
  await withServer((_, response) => {
    response.write("first");
  }, async (fetch) => {
    const abort = new AbortController();
    const reader = (await fetch("/", { signal: abort.signal })).body!.getReader();
    await reader.read();
    const reason = new Error("seen enough");
    abort.abort(reason);
    await assert.rejects(reader.read(), reason);
  });
});

test("unixFetch() closes the connection when the response body is canceled", async () => {
  const serverSawClose = Promise.withResolvers<void>();
  await withServer((_, response) => {
    response.once("close", () => serverSawClose.resolve());
    response.write("first");
  }, async (fetch) => {
    const response = await fetch("/");
    await response.body!.cancel();
    await serverSawClose.promise;
  });
});

test("unixFetch() fails with the error of a request body that fails", async () => {
  await withServer((request) => {
    request.on("error", () => {});
  }, async (fetch) => {
    const reason = new Error("source is gone");
    const body = new ReadableStream({
      start: (controller) => controller.error(reason),
    });
    await assert.rejects(
      fetch("/", { method: "POST", body, duplex: "half" } as RequestInit),
      (error: unknown) => error instanceof TypeError && error.cause === reason,
    );
  });
});

test("unixFetch() refuses the arguments that fetch refuses", async () => {
  await withServer(echo, async (fetch) => {
    await assert.rejects(fetch("/", { body: "a GET has no body" }), TypeError);
    await assert.rejects(fetch("http://"), TypeError);
    await assert.rejects(fetch("/", { headers: { "bad name": "x" } }), TypeError);
  });
});

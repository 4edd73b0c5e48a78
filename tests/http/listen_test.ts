/** Requests and responses as a handler sees them. They are the same under each runtime. */
import assert from "node:assert/strict";
import { existsSync, lstatSync, readFileSync, unlinkSync } from "node:fs";
import { chmod, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { HttpHandler } from "../../src/http/message.ts";
import { refusalResponse } from "../../src/api/responses.ts";
import { listen } from "../../src/http/server.ts";
import { withFolder } from "../../tools/support/program.ts";
import { exchange } from "../support/raw_client.ts";
import { bodyOf, withHandler } from "../support/test_server.ts";

const HOST = "Host: localhost\r\n";
const TEXT = { "content-type": "text/plain" };

/** Responds with a description of the request. */
const echo: HttpHandler = async (request) => ({
  status: 200,
  headers: TEXT,
  body: JSON.stringify({
    method: request.method,
    target: request.target,
    host: request.header("host"),
    x: request.header("x"),
    body: String(await bodyOf(request)),
  }),
});

const SEEN: Array<[title: string, head: string, seen: object]> = [
  ["a target verbatim", "GET //a/%62?c=%zz+#d HTTP/1.1", { target: "//a/%62?c=%zz+#d" }],
  ["dots and backslashes in a target", "GET /a/../b\\c HTTP/1.1", { target: "/a/../b\\c" }],
  ["an absolute target", "GET http://other/a?b HTTP/1.1", { target: "http://other/a?b" }],
  ["a target with an asterisk", "DELETE /* HTTP/1.1", { method: "DELETE", target: "/*" }],
  ["a missing header as null", "GET / HTTP/1.1", { x: null, host: "localhost" }],
  ["an empty header as empty", "GET / HTTP/1.1\r\nX:", { x: "" }],
  ["a header without surrounding whitespace", "GET / HTTP/1.1\r\nX: \t a b\t ", { x: "a b" }],
  ["repeated headers joined", "GET / HTTP/1.1\r\nX: a\r\nx: b", { x: "a, b" }],
  ["each byte of a header as a character", "GET / HTTP/1.1\r\nX: \u00c3\u00a9", {
    x: "\u00c3\u00a9",
  }],
];

for (const [title, head, seen] of SEEN) {
  test(`listen() passes on ${title}`, async () => {
    await withHandler(echo, async ({ socketPath }) => {
      const bytes = new Uint8Array([...`${head}\r\n${HOST}\r\n`].map((c) => c.charCodeAt(0)));
      const response = await exchange(socketPath, bytes);
      const shown = JSON.parse(response!.body);
      for (const [name, value] of Object.entries(seen)) assert.equal(shown[name], value, name);
    });
  });
}

test("listen() rejects when its socket path exists", async () => {
  await withFolder(async (folder) => {
    const path = join(folder, "s.sock");
    await writeFile(path, "");
    const started = listen({ path, handler: echo, refusal: assert.fail, report: assert.fail });
    await assert.rejects(started, { code: "EADDRINUSE" });
  });
});

test("listen() reports another file in place of its socket, and binds again once it is gone", () =>
  withFolder(async (folder) => {
    const path = join(folder, "s.sock");
    const reported = Promise.withResolvers<string>();
    const server = await listen({
      path,
      handler: echo,
      refusal: refusalResponse,
      report: reported.resolve,
      acceptProbeMs: 10,
    });
    await writeFile(join(folder, "other"), "other");
    await rename(join(folder, "other"), path);
    assert.equal(
      await reported.promise,
      `${path}: does not accept connections; reopening the socket`,
    );
    while (!existsSync(path)) await setImmediate();
    assert.equal(readFileSync(path, "utf8"), "other");
    unlinkSync(path);
    while (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) await setImmediate();
    assert.equal((await exchange(path, `GET / HTTP/1.1\r\n${HOST}\r\n`))?.status, 200);
    await server.close();
  }));

for (
  const [folderMode, socketMode, title] of [
    [0o777, 0o600, "its owner alone"],
    [0o2750, 0o660, "the group of its directory if that has the setgid bit"],
  ] as const
) {
  test(`listen() lets ${title} connect`, () =>
    withFolder(async (folder) => {
      await chmod(folder, folderMode);
      const path = join(folder, "s.sock");
      const server = await listen({ path, handler: echo, refusal: refusalResponse, report() {} });
      assert.equal(lstatSync(path).mode & 0o777, socketMode);
      await server.close();
    }));
}

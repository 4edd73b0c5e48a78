/** Both runtimes return the same responses. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { withServing } from "../support/deployment.ts";
import { request } from "../support/http_client.ts";
import { exchange } from "../support/raw_client.ts";
import {
  absenceOf,
  executableOf,
  type RuntimeName,
  THIS_RUNTIME,
} from "../../tools/support/runtimes.ts";
import { get, post } from "./support/raw_requests.ts";
import { TOUR } from "./support/tour_stops.ts";

const OTHER_RUNTIME: RuntimeName = THIS_RUNTIME === "deno" ? "node" : "deno";
const skip = executableOf(OTHER_RUNTIME) === null ? absenceOf(OTHER_RUNTIME) : false;

const REQUESTS = TOUR.map(([, request]) => request).filter(({ path = "", method }) =>
  !path.includes("follow=true") || method === "HEAD"
);
const RAW: readonly [title: string, bytes: string][] = [
  ["not HTTP", "hello there\r\n\r\n"],
  ["the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["an endless head", "X".repeat(100 * 1024)],
  ["both framings of a body", post("/v1/events", "", "Transfer-Encoding: chunked\r\n")],
  ["a CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\nmore"],
  ["an absolute target", get("http://elsewhere/v1/events?limit=1")],
  ["a target with a fragment", get("/v1/events#x")],
  ["a range request", get("/v1/events", "Range: bytes=0-1\r\nIf-None-Match: *\r\n")],
  [
    "a protocol upgrade request",
    get("/v1/events", "Connection: upgrade\r\nUpgrade: websocket\r\n"),
  ],
  ["a request to close the connection", get("/v1/events", "Connection: close\r\n")],
  ["no host", "GET /v1/events HTTP/1.1\r\n\r\n"],
  ["a leading line ending", `\r\n${get("/v1/streams")}`],
];

/** Replaces event ids with numbers, and times and hashes with placeholders. */
function maskedBy(eventIds: string[]): (text: string) => string {
  return (text) =>
    text
      .replace(/"(event_hash|content_hash)":"[0-9a-f]{64}"/g, '"$1":"HASH"')
      .replace(/"observed_at":"[^"]+"/g, '"observed_at":"TIME"')
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
        if (!eventIds.includes(id)) eventIds.push(id);
        return `id-${eventIds.indexOf(id)}`;
      });
}

/** Requests and their responses from a newly started `serve`. */
function answersOf(runtime: RuntimeName): Promise<Record<string, unknown>[]> {
  return withServing(async (deployment) => {
    const { socketPath } = deployment;
    const mask = maskedBy([]);
    const answers: Record<string, unknown>[] = [];
    const take = (what: string, status?: number, headers: object = {}, body = "") =>
      answers.push({ what, status, headers: { ...headers, date: "" }, body: mask(body) });
    for (const options of REQUESTS) {
      const { status, headers, body } = await request(socketPath, options);
      take(`${options.method} ${options.path}`, status, headers, body.toString());
    }
    for (const [title, bytes] of RAW) {
      const response = await exchange(socketPath, Buffer.from(bytes, "latin1"));
      take(title, response?.status, response?.headers, response?.body);
    }
    await deployment.stop();
    return answers;
  }, { runtime });
}

test("Deno and Node respond to each request with the same status, headers and body", {
  skip,
}, async () => {
  const [own, other] = await Promise.all([answersOf(THIS_RUNTIME), answersOf(OTHER_RUNTIME)]);
  for (const [n, answer] of own.entries()) assert.deepEqual(answer, other[n]);
  assert.equal(own.length, REQUESTS.length + RAW.length);
});

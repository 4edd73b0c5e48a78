/** Requests of every kind, good and bad, as bytes: what two servers have to answer alike. */
import { Buffer } from "node:buffer";
import { batchWith, event, NO_EVENT_ID } from "./api.ts";

/** A request; where it needs event ids it is made of those that the server has given out so far. */
export interface ParityRequest {
  title: string;
  bytes: (eventIds: readonly string[]) => string;
}

const HOST = "Host: localhost\r\n";

function raw(title: string, bytes: string): ParityRequest {
  return { title, bytes: () => bytes };
}

function get(target: string, headers = ""): ParityRequest {
  return raw(`GET ${target} ${headers}`, `GET ${target} HTTP/1.1\r\n${HOST}${headers}\r\n`);
}

function method(name: string, path: string): ParityRequest {
  return raw(`${name} ${path}`, `${name} ${path} HTTP/1.1\r\n${HOST}\r\n`);
}

function post(title: string, body: unknown, headers = "", path = "/v1/events"): ParityRequest {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const length = Buffer.byteLength(text);
  return raw(
    `POST ${path}: ${title}`,
    `POST ${path} HTTP/1.1\r\n${HOST}${headers}Content-Length: ${length}\r\n\r\n${text}`,
  );
}

function retire(title: string, body: unknown): ParityRequest {
  return post(title, body, "", "/v1/sources/retire");
}

/** A GET whose target holds an event id. */
function getAfter(target: (eventIds: readonly string[]) => string, title: string): ParityRequest {
  return { title, bytes: (ids) => `GET ${target(ids)} HTTP/1.1\r\n${HOST}\r\n` };
}

function chunked(title: string, chunks: string): ParityRequest {
  const head = `POST /v1/events HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`;
  return raw(`chunked: ${title}`, head + chunks);
}

const EVENTS = [
  event({ record_key: "zoë €", payload: { b: [1e21, 0.1, -0, "\u2028\u007f"], a: "é\n" } }),
  event({ stream: "items", kind: "deleted", occurred_at: "2026-01-01T00:00:00.5Z" }),
];

/** In this order, each on a connection of its own. */
export const PARITY_REQUESTS: readonly ParityRequest[] = [
  get("/v1/events"),
  get("/v1/streams"),
  post("a batch", batchWith({ events: EVENTS })),
  post("the same batch", batchWith({ events: EVENTS })),
  post("other events", batchWith({})),
  post("a second batch", batchWith({ batch_id: "2" }), "Content-Type: application/json\r\n"),
  post(
    "a precondition that fails",
    batchWith({
      batch_id: "3",
      stream_precondition: { stream: "orders", expected_frontier: NO_EVENT_ID },
    }),
  ),
  post("no JSON", "{"),
  post("no body", ""),
  post("a duplicate member", '{"v":1,"v":1}'),
  post("a number that loses precision", '{"v":9007199254740993}'),
  post("bad batch", batchWith({ batch_id: "service/x" })),
  post("no events", batchWith({ events: [] })),
  post("bad events", batchWith({ events: [event({ kind: "" }), event(), { x: 1 }] })),
  post("a deep body", "[".repeat(1000)),
  post(
    "a lineage marker that is none",
    batchWith({
      events: [event({ stream: "service.source_lineage" })],
    }),
  ),
  post("text", "a", "Content-Type: text/plain\r\n"),
  post("latin-1", "{}", "Content-Type: application/json; charset=latin1\r\n"),
  post("two content types", "{}", "Content-Type: application/json\r\n".repeat(2)),
  post("an empty content type", "{}", "Content-Type:\r\n"),
  post("gzip", "{}", "Content-Encoding: gzip\r\n"),
  post("a query", batchWith({}), "", "/v1/events?x=1"),
  raw("no length", `POST /v1/events HTTP/1.1\r\n${HOST}\r\n`),
  raw("33 MiB", `POST /v1/events HTTP/1.1\r\n${HOST}Content-Length: 34603008\r\n\r\n`),
  raw("a negative length", `POST /v1/events HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`),
  raw(
    "a length over 2^64",
    `POST /v1/events HTTP/1.1\r\n${HOST}Content-Length: 1${"0".repeat(20)}\r\n\r\n`,
  ),
  raw(
    "Expect: 100-continue",
    `POST /v1/events HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 1\r\n\r\n{`,
  ),
  chunked("one chunk", "1\r\n{\r\n0\r\n\r\n"),
  chunked("an extension and a trailer", "1;a=b\r\n{\r\n0\r\nX: y\r\n\r\n"),
  get("/v1/events?limit=1"),
  get("/v1/events?kind=none"),
  get("/v1/events?record_key=zo%C3%AB+%E2%82%AC"),
  getAfter((ids) => `/v1/events?after=${ids[0]}`, "after an event"),
  getAfter((ids) => `/v1/streams?through=${ids[0]}`, "streams at an event"),
  getAfter((ids) => `/v1/streams?after=shop/items&through=${ids[1]}`, "streams, second page"),
  get("/v1/events?limit=0"),
  get("/v1/events?limit=1&limit=1"),
  get("/v1/events?follow=maybe"),
  get("/v1/events?after=%zz"),
  get("/v1/events?source=a b"),
  get(`/v1/streams?through=${NO_EVENT_ID}`),
  get("/v1/streams?after=a/b"),
  get("/v1/streams?limit=1&source=shop"),
  get("http://elsewhere/v1/events?limit=1"),
  get("//v1/events"),
  get("/v1/x/../events"),
  get("/v1/%65vents"),
  get("/v1/events#x"),
  get("/v1/events", "Connection: close\r\n"),
  get("/v1/events", "Accept-Encoding: gzip, br\r\n"),
  get("/v1/events", "Range: bytes=0-1\r\nIf-None-Match: *\r\n"),
  get("/v1/events", "Connection: upgrade\r\nUpgrade: websocket\r\n"),
  get("/v1/events", "Authorization: Basic x\r\n"),
  raw("GET with a body", `GET /v1/streams HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\nabc`),
  raw("no host", "GET /v1/events HTTP/1.1\r\n\r\n"),
  raw("an empty host", "GET /v1/streams HTTP/1.1\r\nHost:\r\n\r\n"),
  raw("an odd host", "GET /v1/streams HTTP/1.1\r\nHost: a b/c?d\r\n\r\n"),
  raw("a line end before", `\r\nGET /v1/streams HTTP/1.1\r\n${HOST}\r\n`),
  raw("no HTTP", "hello\r\n\r\n"),
  raw("a TLS greeting", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
  raw("a blank before a colon", "GET /v1/events HTTP/1.1\r\nHost : a\r\n\r\n"),
  raw("a NUL in a header", `GET /v1/events HTTP/1.1\r\n${HOST}X: a\0\r\n\r\n`),
  method("HEAD", "/v1/events"),
  method("HEAD", "/v1/streams"),
  method("HEAD", "/v1/streams?limit=0"),
  method("HEAD", "/v1/sources/retire"),
  method("HEAD", "/v1/events?follow=true"),
  method("HEAD", "/nothing"),
  method("DELETE", "/v1/events"),
  method("PUT", "/v1/sources/retire"),
  method("OPTIONS", "/v1/streams"),
  method("OPTIONS", "*"),
  method("TRACE", "/v1/events"),
  method("POST", "/v1/query"),
  retire("a source", { source: "shop" }),
  retire("the same source", { source: "shop" }),
  retire("an unknown source", { source: "none" }),
  retire("system", { source: "system" }),
  retire("no source", {}),
  post("a batch of a retired source", batchWith({ batch_id: "9" })),
  post(
    "a lineage conflict",
    batchWith({
      source: "shop2",
      events: [event({
        stream: "service.source_lineage",
        record_key: "shop",
        kind: "source_succeeded",
        payload: {
          v: 1,
          predecessor_source: "shop",
          predecessor_final_frontier: NO_EVENT_ID,
        },
      })],
    }),
  ),
  get("/v1/streams"),
  // A retirement's payload holds an id, and so its hash is another on each server.
  get("/v1/events?source=shop"),
];

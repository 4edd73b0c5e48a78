/**
 * Bytes in which one reader of HTTP could see other requests than the next one does, and which
 * requests must be seen in them. `hidden` is the batch that somebody might be made to execute.
 */
import { HEADER_BYTES_MAX, INGEST_BODY_BYTES_MAX } from "../../../src/limits.ts";

export interface Shape {
  title: string;
  /** A byte for each character. */
  bytes: string;
  /** Of all answers, in order. */
  statuses: number[];
  /** Ids of the batches that are committed. */
  executed: string[];
}

const HOST = "Host: a\r\n";

/** The JSON of a batch of one event. */
function batchText(id: string, payload: unknown = null): string {
  const event = { stream: "t", record_key: "k", kind: "upserted", payload };
  return JSON.stringify({ source: "s", batch_id: id, events: [event] });
}

const PATH = "/v1/events";

/** A request with these header lines and whatever follows its head. */
function request(line: string, headers: string, rest = ""): string {
  return `${line}\r\n${HOST}${headers}\r\n${rest}`;
}

function post(headers: string, rest: string): string {
  return request(`POST ${PATH} HTTP/1.1`, headers, rest);
}

/** A plain request that commits a batch. */
function commit(id: string, payload: unknown = null, headers = ""): string {
  const text = batchText(id, payload);
  return post(`${headers}Content-Length: ${text.length}\r\n`, text);
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

const CHUNKED = "Transfer-Encoding: chunked\r\n";
const LAST_CHUNK = "0\r\n\r\n";
const HIDDEN = commit("hidden");
const OUTER = batchText("outer");
const OUTER_CHUNKED = chunk(OUTER) + LAST_CHUNK;

/** Bodies are framed by these headers; what follows is another request and is seen as one. */
const PLAIN: Shape[] = [
  {
    title: "a batch in chunks, and one behind it",
    bytes: post(CHUNKED, OUTER_CHUNKED) + HIDDEN,
    statuses: [200, 200],
    executed: ["outer", "hidden"],
  },
  {
    title: "chunks announced behind a tab, in capitals",
    bytes: post("Transfer-Encoding:\tCHUNKED\t\r\n", OUTER_CHUNKED) + commit("after"),
    statuses: [200, 200],
    executed: ["outer", "after"],
  },
  {
    title: "a length with zeros in front",
    bytes: post(`Content-Length: 000${OUTER.length}\r\n`, OUTER) + commit("after"),
    statuses: [200, 200],
    executed: ["outer", "after"],
  },
  {
    title: "trailers that look like headers",
    bytes: post(CHUNKED, `${chunk(OUTER)}0\r\nContent-Length: 9\r\nConnection: close\r\n\r\n`) +
      commit("after"),
    statuses: [200, 200],
    executed: ["outer", "after"],
  },
  {
    title: "empty lines between requests",
    bytes: `\r\n\r\n${commit("outer")}\r\n\r\n\r\n${commit("after")}\r\n`,
    statuses: [200, 200],
    executed: ["outer", "after"],
  },
  {
    title: "an offer to upgrade",
    bytes: commit("outer", null, "Connection: Upgrade\r\nUpgrade: h2c\r\n") + commit("after"),
    statuses: [200, 200],
    executed: ["outer", "after"],
  },
];

/** A request lies in the body of another one. */
const IN_BODIES: Shape[] = [
  {
    title: "a request as body",
    bytes: post(`Content-Length: ${HIDDEN.length}\r\n`, HIDDEN) + commit("after"),
    statuses: [400, 200],
    executed: ["after"],
  },
  {
    title: "a request as payload",
    bytes: commit("outer", HIDDEN) + commit("after", `\r\n\r\n${HIDDEN}`),
    statuses: [200, 200],
    executed: ["outer", "after"],
  },
  {
    title: "a request as chunk",
    bytes: post(CHUNKED, chunk(HIDDEN) + LAST_CHUNK) + commit("after"),
    statuses: [400, 200],
    executed: ["after"],
  },
  {
    title: "a request in the body of a GET",
    bytes: request(`GET ${PATH} HTTP/1.1`, `Content-Length: ${HIDDEN.length}\r\n`, HIDDEN) +
      commit("after"),
    statuses: [200, 200],
    executed: ["after"],
  },
  {
    title: "a request in chunks of a GET",
    bytes: request(`GET ${PATH} HTTP/1.1`, CHUNKED, chunk(HIDDEN) + LAST_CHUNK) + commit("after"),
    statuses: [200, 200],
    executed: ["after"],
  },
  {
    title: "a request in the body of one for an unknown path",
    bytes: request("POST /none HTTP/1.1", `Content-Length: ${HIDDEN.length}\r\n`, HIDDEN) +
      commit("after"),
    statuses: [404, 200],
    executed: ["after"],
  },
  {
    title: "a request in the body of one with an unknown method",
    bytes: request(`post ${PATH} HTTP/1.1`, CHUNKED, chunk(HIDDEN) + LAST_CHUNK) + commit("after"),
    statuses: [405, 200],
    executed: ["after"],
  },
  {
    title: "a request in a body of the wrong type",
    bytes: post(`Content-Type: text/plain\r\nContent-Length: ${HIDDEN.length}\r\n`, HIDDEN) +
      commit("after"),
    statuses: [415, 200],
    executed: ["after"],
  },
  {
    title: "requests in a body that is too large",
    bytes: post(`Content-Length: ${INGEST_BODY_BYTES_MAX + 1}\r\n`, HIDDEN + HIDDEN),
    statuses: [413],
    executed: [],
  },
  {
    title: "requests instead of the body that was not asked for",
    bytes: post(
      `Content-Type: a/b\r\nExpect: 100-continue\r\nContent-Length: ${3 * HIDDEN.length}\r\n`,
      HIDDEN + HIDDEN,
    ),
    statuses: [415],
    executed: [],
  },
  {
    title: "a request within the length that another one has announced and not sent",
    bytes: post(`Content-Length: ${OUTER.length + HIDDEN.length + 1}\r\n`, OUTER + HIDDEN),
    statuses: [429],
    executed: [],
  },
  {
    title: "a request within a chunk that is announced and not sent",
    bytes: post(CHUNKED, `${chunk(OUTER)}fff\r\n${HIDDEN}`),
    statuses: [429],
    executed: [],
  },
  {
    title: "chunks without their end",
    bytes: post(CHUNKED, `${chunk(OUTER)}0\r\n`),
    statuses: [429],
    executed: [],
  },
];

/** Nothing behind these is looked at. */
const ENDING: Shape[] = [
  {
    title: "a request behind one that ends the connection",
    bytes: commit("outer", null, "Connection: close\r\n") + HIDDEN,
    statuses: [200],
    executed: ["outer"],
  },
  {
    title: "a request behind one of HTTP/1.0",
    bytes: request(
      `POST ${PATH} HTTP/1.0`,
      `Connection: keep-alive\r\nContent-Length: ${OUTER.length}\r\n`,
      OUTER,
    ) + HIDDEN,
    statuses: [200],
    executed: ["outer"],
  },
  {
    title: "a request behind a CONNECT",
    bytes: request("CONNECT a:1 HTTP/1.1", "Connection: close\r\n") + HIDDEN,
    statuses: [404],
    executed: [],
  },
];

/** Header lines of which no reader can be sure what they say of the body. */
const UNCLEAR_FRAMING: Record<string, string> = {
  "a length and chunks": `Content-Length: ${OUTER.length}\r\n${CHUNKED}`,
  "chunks and a length": `${CHUNKED}Content-Length: ${OUTER.length}\r\n`,
  "chunks and a length of nothing": `${CHUNKED}Content-Length: 0\r\n`,
  "two lengths": `Content-Length: 0\r\nContent-Length: ${OUTER.length}\r\n`,
  "one length twice": `Content-Length: ${OUTER.length}\r\n`.repeat(2),
  "a list of lengths": `Content-Length: ${OUTER.length}, ${OUTER.length}\r\n`,
  "a length with a sign": `Content-Length: +${OUTER.length}\r\n`,
  "a negative length": "Content-Length: -1\r\n",
  "a length in hexadecimal": `Content-Length: 0x${OUTER.length.toString(16)}\r\n`,
  "a length with an exponent": "Content-Length: 1e2\r\n",
  "an empty length": "Content-Length:\r\n",
  "two numbers as length": "Content-Length: 1 0\r\n",
  "a length with a NUL": "Content-Length: 1\x000\r\n",
  "a length behind a no-break space": `Content-Length:\xa0${OUTER.length}\r\n`,
  "a length in digits of another script": "Content-Length: \xb2\xb3\r\n",
  "a length that goes on in the next line": "Content-Length: 1\r\n 0\r\n",
  "a blank before the colon of a length": `Content-Length : ${OUTER.length}\r\n`,
  "a tab before the colon of a length": `Content-Length\t: ${OUTER.length}\r\n`,
  "a blank before the colon of chunks": "Transfer-Encoding : chunked\r\n",
  "a blank before the name of chunks": " Transfer-Encoding: chunked\r\n",
  "a tab before the name of chunks": "X: y\r\n\tTransfer-Encoding: chunked\r\n",
  "a vertical tab before chunks": "Transfer-Encoding: \x0bchunked\r\n",
  "chunks in a line of their own": "Transfer-Encoding:\r\n chunked\r\n",
  "chunks behind a line end of LF": "X: y\nTransfer-Encoding: chunked\r\n",
  "chunks behind a line end of CR": "X: y\rTransfer-Encoding: chunked\r\n",
  "chunks with a parameter": "Transfer-Encoding: chunked;q=1\r\n",
  "chunks in quotes": 'Transfer-Encoding: "chunked"\r\n',
  "chunks twice": CHUNKED.repeat(2),
  "chunks in chunks": "Transfer-Encoding: chunked, chunked\r\n",
  "chunks and another coding": "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
  "another coding and chunks": "Transfer-Encoding: gzip, chunked\r\n",
  "chunks and identity": "Transfer-Encoding: chunked, identity\r\n",
  "identity": `Transfer-Encoding: identity\r\nContent-Length: ${OUTER.length}\r\n`,
  "an unknown coding": "Transfer-Encoding: xchunked\r\n",
  "an empty coding": "Transfer-Encoding:\r\n",
  "a NUL in a name": "Content\0-Length: 1\r\n",
  "a header without a name": ": x\r\n",
  "a header without a colon": "Content-Length\r\n",
  "a DEL in a value": "X: \x7f\r\n",
  "a second host": "Host: b\r\n",
};

/** Each with what it could frame, and the hidden request behind. */
function unclear(): Shape[] {
  return Object.entries(UNCLEAR_FRAMING).flatMap(([title, headers]) => [
    {
      title: `${title}, before a plain body`,
      bytes: post(headers, OUTER + HIDDEN),
      statuses: [400],
      executed: [],
    },
    {
      title: `${title}, before chunks`,
      bytes: post(headers, OUTER_CHUNKED + HIDDEN),
      statuses: [400],
      executed: [],
    },
  ]).map((shape) => withBodyOfSecondHost(shape));
}

/** A second host leaves no doubt of the body: there is none, and what follows is no request. */
function withBodyOfSecondHost(shape: Shape): Shape {
  return shape.title.startsWith("a second host") ? { ...shape, statuses: [400, 400] } : shape;
}

/** Heads that are none, with the hidden request behind. */
const BROKEN_HEADS: Record<string, string> = {
  "a NUL in the path": request("GET /v1/events\0 HTTP/1.1", ""),
  "a blank in the path": request("GET /v1/events HTTP/1.1 HTTP/1.1", ""),
  "a tab behind the method": request("GET\t/v1/events HTTP/1.1", ""),
  "a byte beyond ASCII in the path": request("GET /v1/\xe9 HTTP/1.1", ""),
  "no version": request(`GET ${PATH}`, ""),
  "a version with zeros": request(`GET ${PATH} HTTP/01.1`, ""),
  "a version in lowercase": request(`GET ${PATH} http/1.1`, ""),
  "another version": request(`GET ${PATH} HTTP/1.2`, ""),
  "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "HTTP/0.9": `GET ${PATH}\r\n\r\n`,
  "lines that end with LF": `GET ${PATH} HTTP/1.1\nHost: a\n\n`,
  "lines that end with CR": `GET ${PATH} HTTP/1.1\rHost: a\r\r`,
  "an empty line of LF": `GET ${PATH} HTTP/1.1\r\nHost: a\r\n\n`,
  "a line that begins with a blank": `GET ${PATH} HTTP/1.1\r\n X: y\r\n\r\n`,
  "a control character": request(`GET ${PATH} HTTP/1.1`, "X: \x01\r\n"),
  "a header line that is too long": request(
    `GET ${PATH} HTTP/1.1`,
    `X: ${"x".repeat(HEADER_BYTES_MAX)}\r\n`,
  ),
  "too many header lines": request(
    `GET ${PATH} HTTP/1.1`,
    "X: y\r\n".repeat(HEADER_BYTES_MAX / 6),
  ),
  "a path that is too long": request(`GET /${"x".repeat(HEADER_BYTES_MAX)} HTTP/1.1`, ""),
};

function brokenHeads(): Shape[] {
  return Object.entries(BROKEN_HEADS).map(([title, head]) => ({
    title,
    bytes: head + HIDDEN,
    statuses: [400],
    executed: [],
  }));
}

/** Chunks that are none. Each could be read so that the hidden request is found. */
const BROKEN_CHUNKS: Record<string, string> = {
  "a size that wraps around": `${"f".repeat(16)}\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a size that wraps around to its own": `1${OUTER.length.toString(16).padStart(16, "0")}\r\n` +
    `${OUTER}\r\n${LAST_CHUNK}`,
  "a negative size": `-1\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a size with a prefix": `0x${OUTER_CHUNKED}`,
  "a size with a blank behind": `${OUTER.length.toString(16)} \r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a size with a blank before": ` ${OUTER_CHUNKED}`,
  "a size line that ends with LF": `${OUTER.length.toString(16)}\n${OUTER}\r\n${LAST_CHUNK}`,
  "a size line that ends with CR": `${OUTER.length.toString(16)}\r${OUTER}\r\n${LAST_CHUNK}`,
  "an extension that ends with LF": `${OUTER.length.toString(16)};a\n${OUTER}\r\n${LAST_CHUNK}`,
  "an extension with a NUL": `${OUTER.length.toString(16)};\0\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a chunk that is too short": `${(OUTER.length + 1).toString(16)}\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a chunk that is too long": `${(OUTER.length - 1).toString(16)}\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a chunk that ends with LF": `${OUTER.length.toString(16)}\r\n${OUTER}\n${LAST_CHUNK}`,
  "a last chunk without its empty line": `${chunk(OUTER)}0\r\n`,
  "a trailer that is a request line": `${chunk(OUTER)}0\r\nX: y\r\nPOST / HTTP/1.1\r\n\r\n`,
  "a trailer that goes on": `${chunk(OUTER)}0\r\nX: y\r\n z\r\n\r\n`,
  "a trailer that ends with LF": `${chunk(OUTER)}0\r\nX: y\n\r\n`,
  "no chunk at all": OUTER,
  "an empty line before the size": `\r\n${OUTER_CHUNKED}`,
};

function brokenChunks(): Shape[] {
  return Object.entries(BROKEN_CHUNKS).map(([title, body]) => ({
    title: `chunks with ${title}`,
    bytes: post(CHUNKED, body + HIDDEN),
    statuses: [400],
    executed: [],
  }));
}

export const SHAPES: readonly Shape[] = [
  ...PLAIN,
  ...IN_BODIES,
  ...ENDING,
  ...unclear(),
  ...brokenHeads(),
  ...brokenChunks(),
];

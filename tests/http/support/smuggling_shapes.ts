/**
 * Byte sequences in which two HTTP parsers could find different requests, with the correct
 * responses and commits. `hidden` is the batch that an attacker might smuggle in.
 */
import { HEADER_BYTES_MAX, INGEST_BODY_BYTES_MAX } from "../../../src/limits.ts";

export interface Shape {
  title: string;
  /** The request, with one character per byte. */
  bytes: string;
  /** Statuses of all responses, in order. */
  statuses: number[];
  /** Ids of the committed batches. */
  executed: string[];
}

const HOST = "Host: a\r\n";

/** The JSON of a batch of one event. */
function batchText(id: string, payload: unknown = null): string {
  const event = { stream: "t", record_key: "k", kind: "upserted", payload };
  return JSON.stringify({ source: "s", batch_id: id, events: [event] });
}

const PATH = "/v1/events";

/** A request with these header lines. `rest` follows its head. */
function request(line: string, headers: string, rest = ""): string {
  return `${line}\r\n${HOST}${headers}\r\n${rest}`;
}

function post(headers: string, rest: string): string {
  return request(`POST ${PATH} HTTP/1.1`, headers, rest);
}

/** A well-formed request that commits a batch. */
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
const HIDDEN_LENGTH = `Content-Length: ${HIDDEN.length}\r\n`;
const HIDDEN_CHUNKED = chunk(HIDDEN) + LAST_CHUNK;
const GET = `GET ${PATH} HTTP/1.1`;

/** Shapes that must get these responses and commit these batches. */
function shapes(
  statuses: number[],
  executed: string[],
  bytesByTitle: Record<string, string>,
): Shape[] {
  return Object.entries(bytesByTitle).map(([title, bytes]) => ({
    title,
    bytes,
    statuses,
    executed,
  }));
}

const AFTER = commit("after");
const SIZE = OUTER.length.toString(16);

/** Requests with valid framing, each followed by another request. */
const PLAIN: Shape[] = shapes([200, 200], ["outer", "after"], {
  "a chunked batch, then another batch": post(CHUNKED, OUTER_CHUNKED) + AFTER,
  "chunked declared after a tab, in capitals":
    post("Transfer-Encoding:\tCHUNKED\t\r\n", OUTER_CHUNKED) + AFTER,
  "a chunk size in capitals, with leading zeros":
    post(CHUNKED, `0${SIZE.toUpperCase()}\r\n${OUTER}\r\n000\r\n\r\n`) + AFTER,
  "line endings at chunk boundaries":
    post(CHUNKED, `${chunk("\r\n")}${chunk(`${OUTER}\r\n`)}${LAST_CHUNK}`) + AFTER,
  "extensions": post(CHUNKED, `${SIZE} ; a="b";c\r\n${OUTER}\r\n0;d\r\n\r\n`) + AFTER,
  "a length with leading zeros": post(`Content-Length: 000${OUTER.length}\r\n`, OUTER) + AFTER,
  "trailers that look like headers":
    post(CHUNKED, `${chunk(OUTER)}0\r\nContent-Length: 9\r\nConnection: close\r\n\r\n`) + AFTER,
  "empty lines between requests": `\r\n\r\n${commit("outer")}\r\n\r\n\r\n${AFTER}\r\n`,
  "an offer to upgrade": commit("outer", null, "Connection: Upgrade\r\nUpgrade: h2c\r\n") + AFTER,
});

/** Requests in the body of another request. */
const IN_BODIES: Shape[] = [
  ...shapes([200, 200], ["outer", "after"], {
    "a request as a payload": commit("outer", HIDDEN) + commit("after", `\r\n\r\n${HIDDEN}`),
  }),
  ...shapes([400, 200], ["after"], {
    "a request as a body": post(HIDDEN_LENGTH, HIDDEN) + AFTER,
    "a request as a chunk": post(CHUNKED, HIDDEN_CHUNKED) + AFTER,
  }),
  ...shapes([200, 200], ["after"], {
    "a request in the body of a GET": request(GET, HIDDEN_LENGTH, HIDDEN) + AFTER,
    "a request in a chunked body of a GET": request(GET, CHUNKED, HIDDEN_CHUNKED) + AFTER,
  }),
  ...shapes([404, 200], ["after"], {
    "a request in the body of a request for an unknown path":
      request("POST /none HTTP/1.1", HIDDEN_LENGTH, HIDDEN) + AFTER,
  }),
  ...shapes([405, 200], ["after"], {
    "a request in the body of a request with an unknown method":
      request(`post ${PATH} HTTP/1.1`, CHUNKED, HIDDEN_CHUNKED) + AFTER,
  }),
  ...shapes([415, 200], ["after"], {
    "a request in a body of the wrong type":
      post(`Content-Type: text/plain\r\n${HIDDEN_LENGTH}`, HIDDEN) + AFTER,
  }),
  ...shapes([413], [], {
    "requests in a body that is too large": post(
      `Content-Length: ${INGEST_BODY_BYTES_MAX + 1}\r\n`,
      HIDDEN + HIDDEN,
    ),
    "an impossibly large length": post(
      `Content-Length: ${"9".repeat(400)}\r\n`,
      HIDDEN,
    ),
  }),
  ...shapes([415], [], {
    "requests instead of a body that was not requested": post(
      `Content-Type: a/b\r\nExpect: 100-continue\r\nContent-Length: ${3 * HIDDEN.length}\r\n`,
      HIDDEN + HIDDEN,
    ),
  }),
  ...shapes([400], [], {
    "a request within the declared but unsent length of another": post(
      `Content-Length: ${OUTER.length + HIDDEN.length + 1}\r\n`,
      OUTER + HIDDEN,
    ),
    "a request within a declared but unsent chunk": post(
      CHUNKED,
      `${chunk(OUTER)}fff\r\n${HIDDEN}`,
    ),
    "chunks without a last chunk": post(CHUNKED, `${chunk(OUTER)}0\r\n`),
  }),
];

/** Requests after which no other request is executed. */
const ENDING: Shape[] = [
  ...shapes([200], ["outer"], {
    "a request after one that closes the connection":
      commit("outer", null, "Connection: x, Close\r\n") + HIDDEN,
    "a request after an HTTP/1.0 request": request(
      `POST ${PATH} HTTP/1.0`,
      `Connection: keep-alive\r\nContent-Length: ${OUTER.length}\r\n`,
      OUTER,
    ) + HIDDEN,
  }),
  ...shapes([404], [], {
    "a request after a CONNECT": request("CONNECT a:1 HTTP/1.1", "Connection: close\r\n") + HIDDEN,
  }),
];

/** Header lines that make the framing of the body ambiguous. */
const UNCLEAR_FRAMING: Record<string, string> = {
  "Content-Length before Transfer-Encoding": `Content-Length: ${OUTER.length}\r\n${CHUNKED}`,
  "Transfer-Encoding before Content-Length": `${CHUNKED}Content-Length: ${OUTER.length}\r\n`,
  "Transfer-Encoding before a Content-Length of 0": `${CHUNKED}Content-Length: 0\r\n`,
  "two different Content-Lengths": `Content-Length: 0\r\nContent-Length: ${OUTER.length}\r\n`,
  "the same Content-Length twice": `Content-Length: ${OUTER.length}\r\n`.repeat(2),
  "a list of lengths": `Content-Length: ${OUTER.length}, ${OUTER.length}\r\n`,
  "a length with a sign": `Content-Length: +${OUTER.length}\r\n`,
  "a negative length": "Content-Length: -1\r\n",
  "a length in hexadecimal": `Content-Length: 0x${OUTER.length.toString(16)}\r\n`,
  "a length with an exponent": "Content-Length: 1e2\r\n",
  "an empty length": "Content-Length:\r\n",
  "two numbers as a length": "Content-Length: 1 0\r\n",
  "a length with a NUL": "Content-Length: 1\x000\r\n",
  "a length after a no-break space": `Content-Length:\xa0${OUTER.length}\r\n`,
  "a length in non-ASCII digits": "Content-Length: \xb2\xb3\r\n",
  "a length folded over two lines": "Content-Length: 1\r\n 0\r\n",
  "a space before the colon of a length": `Content-Length : ${OUTER.length}\r\n`,
  "a tab before the colon of a length": `Content-Length\t: ${OUTER.length}\r\n`,
  "a space before the colon of Transfer-Encoding": "Transfer-Encoding : chunked\r\n",
  "a space before Transfer-Encoding": " Transfer-Encoding: chunked\r\n",
  "a tab before Transfer-Encoding": "X: y\r\n\tTransfer-Encoding: chunked\r\n",
  "a vertical tab before chunked": "Transfer-Encoding: \x0bchunked\r\n",
  "chunked on a folded line": "Transfer-Encoding:\r\n chunked\r\n",
  "Transfer-Encoding after a bare LF": "X: y\nTransfer-Encoding: chunked\r\n",
  "Transfer-Encoding after a bare CR": "X: y\rTransfer-Encoding: chunked\r\n",
  "chunked with a parameter": "Transfer-Encoding: chunked;q=1\r\n",
  "chunked in quotes": 'Transfer-Encoding: "chunked"\r\n',
  "chunked in two headers": CHUNKED.repeat(2),
  "chunked twice in one header": "Transfer-Encoding: chunked, chunked\r\n",
  "chunked before an unknown coding": "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
  "gzip before chunked": "Transfer-Encoding: gzip, chunked\r\n",
  "chunked before identity": "Transfer-Encoding: chunked, identity\r\n",
  "identity": `Transfer-Encoding: identity\r\nContent-Length: ${OUTER.length}\r\n`,
  "an unknown coding": "Transfer-Encoding: xchunked\r\n",
  "an empty coding": "Transfer-Encoding:\r\n",
  "a NUL in a name": "Content\0-Length: 1\r\n",
  "a header without a name": ": x\r\n",
  "a header without a colon": "Content-Length\r\n",
  "a DEL in a value": "X: \x7f\r\n",
  "a second host": "Host: b\r\n",
  "a space in a name": "Ho st: a\r\n",
  "an empty continuation line": "X: y\r\n\t\r\n",
  "a length with a decimal point": "Content-Length: 1.0\r\n",
};

/** Each ambiguous header with bodies that it could frame, followed by the hidden request. */
function unclear(): Shape[] {
  return Object.entries(UNCLEAR_FRAMING).flatMap(([title, headers]) => {
    // A second Host header leaves the framing clear, so the next bytes are another request.
    const statuses = title === "a second host" ? [400, 400] : [400];
    return shapes(statuses, [], {
      [`${title}, before a plain body`]: post(headers, OUTER + HIDDEN),
      [`${title}, before a chunked body`]: post(headers, OUTER_CHUNKED + HIDDEN),
    });
  });
}

/** Malformed heads, followed by the hidden request. */
const BROKEN_HEADS: Record<string, string> = {
  "not HTTP": "hello there\r\n\r\n",
  "a TLS ClientHello": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  "an endless head": "X".repeat(2 * HEADER_BYTES_MAX),
  "an unfinished head with a NUL": "GET / HTTP/1.1\r\nHost: \0",
  "a NUL in the path": request("GET /v1/events\0 HTTP/1.1", ""),
  "a space in the path": request("GET /v1/events HTTP/1.1 HTTP/1.1", ""),
  "a tab after the method": request("GET\t/v1/events HTTP/1.1", ""),
  "a non-ASCII byte in the path": request("GET /v1/\xe9 HTTP/1.1", ""),
  "no version": request(`GET ${PATH}`, ""),
  "a version with zeros": request(`GET ${PATH} HTTP/01.1`, ""),
  "a version in lowercase": request(`GET ${PATH} http/1.1`, ""),
  "an unsupported version": request(`GET ${PATH} HTTP/3.1`, ""),
  "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "HTTP/0.9": `GET ${PATH}\r\n\r\n`,
  "lines that end with LF alone": `${GET}\nHost: a\n\n`,
  "lines that end with CR alone": `${GET}\rHost: a\r\r`,
  "an empty line that is only an LF": `${GET}\r\nHost: a\r\n\n`,
  "a line that begins with a space": `${GET}\r\n X: y\r\n\r\n`,
  "a control character": request(GET, "X: \x01\r\n"),
  "a header line that is too long": request(GET, `X: ${"x".repeat(HEADER_BYTES_MAX)}\r\n`),
  "too many header lines": request(GET, "X: y\r\n".repeat(HEADER_BYTES_MAX / 6)),
  "a path that is too long": request(`GET /${"x".repeat(HEADER_BYTES_MAX)} HTTP/1.1`, ""),
  "an empty request line": request("", ""),
  "two spaces in the request line": request(`GET  ${PATH} HTTP/1.1`, ""),
  "a space after the request line": request(`${GET} `, ""),
  "a space before the request line": request(` ${GET}`, ""),
  "a method that is not a token": request(`G@T ${PATH} HTTP/1.1`, ""),
  "a chunked body in HTTP/1.0": request(`POST ${PATH} HTTP/1.0`, CHUNKED, OUTER_CHUNKED),
};

/** Malformed chunks. Misparsing any of them could uncover the hidden request. */
const BROKEN_CHUNKS: Record<string, string> = {
  "a size that wraps around": `${"f".repeat(16)}\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a size that wraps to the valid one": `1${OUTER.length.toString(16).padStart(16, "0")}\r\n` +
    `${OUTER}\r\n${LAST_CHUNK}`,
  "a negative size": `-1\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a size with a prefix": `0x${OUTER_CHUNKED}`,
  "a size followed by a space": `${SIZE} \r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a size preceded by a space": ` ${OUTER_CHUNKED}`,
  "a size line that ends with LF": `${SIZE}\n${OUTER}\r\n${LAST_CHUNK}`,
  "a size line that ends with CR": `${SIZE}\r${OUTER}\r\n${LAST_CHUNK}`,
  "an extension that ends with LF": `${SIZE};a\n${OUTER}\r\n${LAST_CHUNK}`,
  "an extension with a NUL": `${SIZE};\0\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a chunk that is too short": `${(OUTER.length + 1).toString(16)}\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a chunk that is too long": `${(OUTER.length - 1).toString(16)}\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a chunk that ends with LF": `${SIZE}\r\n${OUTER}\n${LAST_CHUNK}`,
  "a last chunk without its empty line": `${chunk(OUTER)}0\r\n`,
  "a trailer that is a request line": `${chunk(OUTER)}0\r\nX: y\r\nPOST / HTTP/1.1\r\n\r\n`,
  "a folded trailer": `${chunk(OUTER)}0\r\nX: y\r\n z\r\n\r\n`,
  "a trailer that ends with LF": `${chunk(OUTER)}0\r\nX: y\n\r\n`,
  "no chunk at all": OUTER,
  "an empty line before the size": `\r\n${OUTER_CHUNKED}`,
  "a size that is not a number": `zz\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a size beyond the largest body": `1000000000000\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "a CR within the size line": `${SIZE}\r\r\n${OUTER}\r\n${LAST_CHUNK}`,
  "no line ending": `${SIZE}\r\n${OUTER}${LAST_CHUNK}`,
  "a trailer without a colon": `${chunk(OUTER)}0\r\nX\r\n\r\n`,
  "an endless extension": `${SIZE};${"a".repeat(HEADER_BYTES_MAX)}\r\n${OUTER}\r\n`,
  "endless extensions": `1;${"a".repeat(1000)}\r\n \r\n`.repeat(HEADER_BYTES_MAX / 1000 + 1),
  "endless trailers": `${chunk(OUTER)}0\r\n${"X: y\r\n".repeat(HEADER_BYTES_MAX / 4)}`,
  "an endless size line": "0".repeat(HEADER_BYTES_MAX + 1),
};

export const SHAPES: readonly Shape[] = [
  ...PLAIN,
  ...IN_BODIES,
  ...ENDING,
  ...unclear(),
  ...Object.entries(BROKEN_HEADS).flatMap(([title, head]) =>
    shapes([400], [], { [title]: head + HIDDEN })
  ),
  ...Object.entries(BROKEN_CHUNKS).flatMap(([title, body]) =>
    shapes([400], [], { [`a chunked body with ${title}`]: post(CHUNKED, body + HIDDEN) })
  ),
];

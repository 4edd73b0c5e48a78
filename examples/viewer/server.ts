/**
 * Serves a web page that shows a log. Like any other consumer, the server connects to the service's
 * socket. All routes are read-only.
 *
 *     node examples/viewer/server.ts --socket demo/data/ground.sock
 *     deno task example:viewer demo/data/ground.sock
 *
 * The server listens on 127.0.0.1 and rejects requests for other host names, so that no other
 * website can read the log through DNS rebinding, and requests that other sites' pages make, which
 * could otherwise start costly reads. Anyone with a login on this machine can read the
 * log.
 *
 * The sources of the page and of `event.ts` are served with types stripped, at their paths in this
 * repository. In the npm package, they are JavaScript.
 */
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { stripTypeScriptTypes } from "node:module";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { EventLogClient, type Fetch, unixFetch } from "../../mod.ts";
import { frontierOf } from "../support/frontier.ts";
import { refuseRest, runExample, UsageError } from "../support/run_example.ts";
import { parseWait, reportRetry, WAIT_OPTION, WAIT_USAGE } from "../support/socket_wait.ts";
import { readToken } from "../support/token_file.ts";
import { FilteredCounts } from "./minute_counts.ts";

const USAGE = `usage: viewer --socket SOCKET [--port PORT] [--wait SECONDS] [--token-file FILE]
       viewer SOCKET

  --socket SOCKET  socket of the service
  --port PORT      port on 127.0.0.1; 0 picks a free one (default: 8787)
  ${WAIT_USAGE}
  --token-file FILE  file with the bearer token, if the service requires one`;

const HOST = "127.0.0.1";
const ROOT = new URL("../../", import.meta.url);
const PAGE = "examples/viewer/page";

/** Paths of the modules that the page imports. */
const SOURCE =
  /^\/(event|src\/limits|src\/event\/[\w/]+|examples\/(support|viewer\/page)\/\w+)\.[jt]s$/;
/** Read-only routes of the service. */
const READING = /^\/v1\/(events|streams)$/;

const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; " +
    "form-action 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

interface Options {
  fetch: Fetch;
  client: EventLogClient;
  port: number;
  token: string | undefined;
  minutes: FilteredCounts;
}

function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      socket: { type: "string" },
      port: { type: "string", default: "8787" },
      wait: WAIT_OPTION,
      "token-file": { type: "string" },
    },
  });
  const rest = [...positionals];
  const socket = values.socket ?? rest.shift();
  if (socket === undefined) throw new UsageError("a socket is required");
  refuseRest(rest);
  const port = Number(values.port);
  if (!(Number.isInteger(port) && port >= 0 && port < 65_536)) {
    throw new UsageError(`--port must be a port number, got ${values.port}`);
  }
  const fetch = unixFetch(socket);
  const token = readToken(values["token-file"]);
  // The page itself retries.
  const client = new EventLogClient(fetch, {
    attemptsMax: 1,
    socketWaitMs: parseWait(values.wait),
    onRetry: reportRetry,
    ...(token !== undefined && { token }),
  });
  return { fetch, client, port, token, minutes: new FilteredCounts(client) };
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": `${type}; charset=utf-8` }).end(body);
}

/** Sends an error document in the service's format. */
function refuse(response: ServerResponse, status: number, error: string, message: string): void {
  send(response, status, "application/json", JSON.stringify({ error, message }));
}

/** Forwards a read request to the service, and streams the response back. */
async function forward(
  { fetch, token }: Options,
  target: string,
  response: ServerResponse,
): Promise<void> {
  const abort = new AbortController();
  response.on("close", () => abort.abort());
  const headers: HeadersInit = token === undefined ? {} : { authorization: `Bearer ${token}` };
  let answer: Response;
  try {
    answer = await fetch(target, { headers, signal: abort.signal });
  } catch (error) {
    if (abort.signal.aborted) return;
    return refuse(response, 502, "service_unreachable", (error as Error).message);
  }
  response.writeHead(answer.status, {
    "content-type": answer.headers.get("content-type") ?? "application/json",
    "cache-control": "no-store",
  });
  // Without this, a follow of an idle log would send no headers, and the page would not connect.
  response.flushHeaders();
  // Either side may close the connection at any time; the page reconnects.
  await pipeline(Readable.fromWeb(answer.body as never), response).catch(() => {});
}

async function serveFile(path: string, response: ServerResponse): Promise<void> {
  const text = await readFile(new URL(path, ROOT), "utf8");
  if (path.endsWith(".html")) return send(response, 200, "text/html", text);
  if (path.endsWith(".css")) return send(response, 200, "text/css", text);
  send(response, 200, "text/javascript", path.endsWith(".ts") ? stripTypeScriptTypes(text) : text);
}

async function respond(
  options: Options,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
  const { method, headers, url = "/" } = request;
  const { port } = request.socket.address() as AddressInfo;
  if (headers.host !== `${HOST}:${port}` && headers.host !== `localhost:${port}`) {
    return refuse(response, 403, "forbidden", `open http://${HOST}:${port}/`);
  }
  const [path, search = ""] = url.split("?") as [string, string?];
  const { origin = `http://${headers.host}` } = headers;
  const site = headers["sec-fetch-site"] ?? "none";
  // A link on another site may open the page itself, but nothing else.
  const isOpened = headers["sec-fetch-mode"] === "navigate" && path === "/";
  const isOwn = site === "none" || site === "same-origin" || isOpened;
  if (!isOwn || origin !== `http://${headers.host}`) {
    return refuse(response, 403, "forbidden", "another site made this request");
  }
  if (method !== "GET") {
    response.setHeader("allow", "GET");
    return refuse(response, 405, "method_not_allowed", "the viewer is read-only");
  }
  if (READING.test(path)) return await forward(options, url, response);
  if (path === "/minutes") {
    const counted = await options.minutes.read(new URLSearchParams(search));
    return send(response, 200, "application/json", JSON.stringify(counted));
  }
  if (path === "/") return await serveFile(`${PAGE}/index.html`, response);
  if (path === "/viewer.css") return await serveFile(`${PAGE}/viewer.css`, response);
  if (SOURCE.test(path)) return await serveFile(path.slice(1), response);
  refuse(response, 404, "not_found", `no such path: ${path}`);
}

/** Resolves once the server is listening, and rejects if it cannot listen. */
function listen(server: Server, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const isBusy = error.code === "EADDRINUSE";
      reject(isBusy ? new Error(`port ${port} is in use; choose another with --port`) : error);
    });
    server.listen(port, HOST, () => resolve(server.address() as AddressInfo));
  });
}

async function serveViewer(options: Options): Promise<void> {
  // Fail early if the socket or the token is wrong.
  await frontierOf(options.client);
  const server = createServer((request, response) => {
    respond(options, request, response).catch((error: NodeJS.ErrnoException) => {
      if (response.headersSent) return response.destroy();
      if (error.code === "ENOENT") return refuse(response, 404, "not_found", "no such file");
      refuse(response, 502, "service_unreachable", error.message);
    });
  });
  const { port } = await listen(server, options.port);
  process.stdout.write(`http://${HOST}:${port}/\n`);
}

await runExample(USAGE, () => serveViewer(parseOptions(process.argv.slice(2))));

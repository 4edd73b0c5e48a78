/**
 * A server that does minimal work per request, as a lower bound for the service. The arguments are
 * the kind of server, the socket, and the file to append to.
 */
import { Buffer } from "node:buffer";
import { fdatasync, openSync, write } from "node:fs";
import { createServer } from "node:http";
import process from "node:process";
import { promisify } from "node:util";
import type { HttpRequest, HttpResponse } from "../../src/http/message.ts";
import { listen } from "../../src/http/server.ts";
import { FLOORS, type FloorWork } from "./floors.ts";
import { Forwarding } from "./forwarding.ts";
import { hashAppended } from "./hashing.ts";
import { Page } from "./page.ts";

const ANSWER = '{"status":"committed"}';
const HEADERS = { "content-type": "application/json" };

const writeFile = promisify(write);
const syncFile = promisify(fdatasync);

/** Appends all waiting bodies with one write and one fdatasync, like a group commit. */
class GroupCommit {
  readonly #file: number;
  #waiting: { body: Uint8Array; done: () => void }[] = [];
  #isRunning = false;

  constructor(path: string) {
    this.#file = openSync(path, "a", 0o600);
  }

  append(body: Uint8Array): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ body, done });
      if (!this.#isRunning) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      const bytes = Buffer.concat(group.map(({ body }) => body));
      const written = await writeFile(this.#file, bytes);
      if (written.bytesWritten !== bytes.length) throw new Error("a short write");
      await syncFile(this.#file);
      for (const { done } of group) done();
    }
    this.#isRunning = false;
  }
}

const forwarding = new Forwarding();

/** Processes a body before the response is sent. */
function worker(work: FloorWork, path: string): (body: Uint8Array) => Promise<void> | void {
  if (work === "answer" || work === "page") return () => {};
  const parse = (body: Uint8Array) => JSON.parse(Buffer.from(body).toString());
  if (work === "parse") return parse;
  const log = new GroupCommit(path);
  return async (body) => {
    const batch = parse(body);
    if (work === "hash-store") hashAppended(batch.events.length);
    await log.append(body);
    if (work === "forward") forwarding.push(body);
  };
}

const SHORT_ANSWER: HttpResponse = { status: 200, headers: HEADERS, body: ANSWER };

const PAGE_ANSWER: HttpResponse = { status: 200, headers: HEADERS, body: new Page() };

async function bodyOf(request: HttpRequest): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (let piece = await request.read(); piece !== null; piece = await request.read()) {
    pieces.push(piece);
  }
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

async function serveOurs(
  path: string,
  use: (body: Uint8Array) => Promise<void> | void,
  answer: HttpResponse,
) {
  const following = { ...answer, body: forwarding, isEndless: true };
  await listen({
    path,
    handler: async (request) => {
      if (request.method === "POST") await use(await bodyOf(request));
      return request.target.includes("follow=true") ? following : answer;
    },
    refusal: () => ({ status: 400, headers: HEADERS, body: "{}" }),
    report: (line) => void process.stderr.write(`${line}\n`),
  });
}

function serveBuiltIn(path: string, use: (body: Uint8Array) => Promise<void> | void): void {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => void pieces.push(piece));
    request.on("end", async () => {
      if (request.method === "POST") await use(Buffer.concat(pieces));
      response.writeHead(200, { ...HEADERS, "content-length": ANSWER.length });
      response.end(ANSWER);
    });
  });
  server.listen(path);
}

const [kind = "", path = "", file = ""] = process.argv.slice(2);
const { isOurs, work } = FLOORS[kind]!;
const use = worker(work, file);
if (isOurs) await serveOurs(path, use, work === "page" ? PAGE_ANSWER : SHORT_ANSWER);
else serveBuiltIn(path, use);

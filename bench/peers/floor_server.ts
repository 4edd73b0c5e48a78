/**
 * A server that does less per request than the service, as a lower bound for the service's cost.
 * The arguments are its work, the socket, and the file to append to. `hash-store` parses a body,
 * computes the hashes of an append, and responds when the body is durable; `forward` then sends it
 * to followers. `page` responds with a replay page from memory.
 */
import { Buffer } from "node:buffer";
import { createHash, hash } from "node:crypto";
import { fdatasync, openSync, write } from "node:fs";
import process from "node:process";
import { promisify } from "node:util";
import type { HttpRequest, HttpResponse } from "../../src/http/message.ts";
import { listen } from "../../src/http/server.ts";
import { READ_CHUNK_BYTES } from "../../src/limits.ts";
import { endProcess } from "../../src/runtime/end_process.ts";
import { PAGE_EVENTS } from "../support/requests.ts";

const HEADERS = { "content-type": "application/json" };

/** Sizes of the typical event (support/requests.ts): its line, and its share of the digest. */
const LINE_BYTES = 717;
const DIGEST_BYTES = 195;
/** What is hashed for each event: its payload, its envelope, and a link of the chain. */
const HASHED_BYTES = [300, 325, 64];
const LINES = Buffer.alloc(PAGE_EVENTS * LINE_BYTES, "x");
/** The members after the events say that the page is the last one. */
const PAGE = Buffer.concat([
  LINES,
  Buffer.from('"next_after":"0","snapshot_through_event_id":"0"}'),
]);

const writeFile = promisify(write);
const syncFile = promisify(fdatasync);

/** Computes hashes with the inputs' number and sizes in an append. */
function hashAppended(events: number): void {
  for (const sizeBytes of HASHED_BYTES) {
    for (let event = 0; event < events; event++) {
      hash("sha256", LINES.subarray(event, event + sizeBytes), "hex");
    }
  }
  for (const bytesPerEvent of [DIGEST_BYTES, LINE_BYTES]) {
    createHash("sha256").update(LINES.subarray(0, events * bytesPerEvent)).digest("hex");
  }
}

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

/** The page, in chunks of the size that the service writes. */
async function* pageChunks(): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < PAGE.length; at += READ_CHUNK_BYTES) {
    yield PAGE.subarray(at, at + READ_CHUNK_BYTES);
  }
}

let forwarded: Uint8Array[] = [];
let wakeFollower = () => {};

/** A follow response in the form that the service's clients expect. */
async function* forwarding(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"type":"caught_up"}\n');
  for (;;) {
    while (forwarded.length === 0) await new Promise<void>((wake) => wakeFollower = wake);
    const bodies = forwarded;
    forwarded = [];
    for (const body of bodies) {
      yield Buffer.concat([Buffer.from('{"event_id":"","batch":'), body, Buffer.from("}\n")]);
    }
  }
}

async function bodyOf(request: HttpRequest): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (let piece = await request.read(); piece !== null; piece = await request.read()) {
    pieces.push(piece);
  }
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

const [work = "", path = "", file = ""] = process.argv.slice(2);
const log = new GroupCommit(file);
process.once("SIGTERM", () => endProcess(0));

async function respond(request: HttpRequest): Promise<HttpResponse> {
  const answer = { status: 200, headers: HEADERS };
  if (request.method === "POST") {
    const body = await bodyOf(request);
    const batch = JSON.parse(Buffer.from(body).toString());
    if (work === "hash-store") hashAppended(batch.events.length);
    await log.append(body);
    if (work === "forward") forwarded.push(body);
    wakeFollower();
    return { ...answer, body: '{"status":"committed"}' };
  }
  if (work === "page") return { ...answer, body: pageChunks() };
  const isFollow = request.target.includes("follow=true");
  return isFollow ? { ...answer, body: forwarding(), isEndless: true } : { ...answer, body: "{}" };
}

await listen({
  path,
  handler: respond,
  refusal: () => ({ status: 400, headers: HEADERS, body: "{}" }),
  report: (line) => void process.stderr.write(`${line}\n`),
});

/**
 * Serves the requests on a connection in order (RFC 9112 section 9.3). A pipelined request waits
 * until the previous response is written, so that it sees the effects of earlier mutations.
 */
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { clearTimeout, setTimeout } from "node:timers";
import {
  DRAIN_BYTES_MAX,
  DRAIN_TIMEOUT_MS,
  HEADER_BYTES_MAX,
  UNAUTHORIZED_MAX,
} from "../limits.ts";
import { IncomingBody } from "./incoming_body.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "./message.ts";
import { MalformedRequestError } from "./message.ts";
import { checkHeadText, parseRequestHead, type RequestHead } from "./request_head.ts";
import { ResponseWriter } from "./response_writer.ts";
import type { StallWatch } from "./stall_watch.ts";
import type { Turns } from "../turns.ts";

/** State shared by a server's connections. */
export interface ConnectionHost {
  readonly handler: HttpHandler;
  /** Creates the response to a malformed request, which may be a HEAD request. */
  readonly refusal: (error: MalformedRequestError, isHead: boolean) => HttpResponse;
  /** Times out incomplete heads. */
  readonly headWatch: StallWatch;
  /** Times out requests whose bodies make no progress. */
  readonly bodyWatch: StallWatch;
  /** Times out connections that have not sent a complete request yet. */
  readonly newWatch: StallWatch;
  /** Times out connections between requests. */
  readonly idleWatch: StallWatch;
  /** Times out clients that do not read. */
  readonly writeWatch: StallWatch;
  /** Pipelined requests take turns with other connections. */
  readonly turns: Turns;
  /** Whether the server is shutting down. If so, each response closes its connection. */
  readonly isClosing: boolean;
  report(line: string): void;
}

const NOTHING = Buffer.alloc(0);
const HEAD_END = Buffer.from("\r\n\r\n");
/** Start of a HEAD request, whose response has no body. */
const HEAD_START = "HEAD ";
/** A longer head is not kept between requests. */
const KEPT_HEAD_BYTES_MAX = 1024;
const CONNECTION_LOST = new MalformedRequestError(
  "the connection closed before the request body was complete, so nothing was written",
);
const CR = 0x0d;
const LF = 0x0a;

export class Connection {
  readonly #socket: Socket;
  readonly #host: ConnectionHost;
  readonly #writer: ResponseWriter;
  readonly destroy: () => void = () => this.#socket.destroy();
  /** Received bytes not yet parsed. */
  #input: Buffer = NOTHING;
  /** Length of the input prefix already searched for the end of a head. */
  #searchedBytes = 0;
  /** The last short head, which most clients repeat, and its text. */
  #head: RequestHead | null = null;
  #headText: string | null = null;
  #body: IncomingBody | null = null;
  #isBusy = false;
  /** Resolves when the last request has been served. */
  #serving: Promise<void> = Promise.resolve();
  #isAnsweringEndlessly = false;
  /** Number of 401 responses since another one. */
  #unauthorized = 0;
  /** Whether the client has half-closed the connection. */
  #hasEnded = false;
  /** Bytes dropped after the last response; null before that response. */
  #lingeredBytes: number | null = null;

  constructor(socket: Socket, host: ConnectionHost) {
    this.#socket = socket;
    this.#host = host;
    this.#writer = new ResponseWriter(socket, host.writeWatch);
    host.newWatch.start(this.destroy);
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("end", () => this.#endInput());
    socket.on("close", () => this.#close());
    // The "close" event that follows handles the error.
    socket.on("error", () => {});
  }

  /** Closes an idle connection; a busy one closes after its response. */
  shutDown(): void {
    if (!this.#isBusy) this.#finish();
  }

  /** Resolves when the connection is closed and its last request has been handled. */
  async over(): Promise<void> {
    const socket = this.#socket;
    if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
    await this.#serving;
  }

  #receive(bytes: Buffer): void {
    if (this.#lingeredBytes !== null) {
      this.#lingeredBytes += bytes.length;
      if (this.#lingeredBytes > DRAIN_BYTES_MAX) return this.destroy();
      // Otherwise, up to 32 reads would be dropped before another connection is served.
      this.#socket.pause();
      void this.#host.turns.next().then(() => this.#socket.resume());
      return;
    }
    const start = this.#body === null || this.#body.isComplete ? 0 : this.#body.push(bytes);
    if (start === bytes.length) return;
    const rest = start === 0 ? bytes : bytes.subarray(start);
    this.#input = this.#input.length === 0 ? rest : Buffer.concat([this.#input, rest]);
    if (!this.#isBusy) this.#takeRequest();
    else this.#socket.pause();
  }

  /** Serves the next request if its head is complete. */
  #takeRequest(): void {
    this.#skipLineEnds();
    const input = this.#input;
    try {
      const head = this.#takeHead();
      if (head !== null) this.#serving = this.#serve(head);
      else if (this.#hasEnded) this.#finish();
    } catch (error) {
      if (!(error instanceof MalformedRequestError)) throw error;
      this.#refuse(error, input.toString("latin1", 0, HEAD_START.length) === HEAD_START);
    }
  }

  /** @throws {MalformedRequestError} */
  #takeHead(): RequestHead | null {
    const input = this.#input;
    const end = input.indexOf(HEAD_END, Math.max(0, this.#searchedBytes - HEAD_END.length + 1));
    if ((end < 0 ? input.length : end) > HEADER_BYTES_MAX) {
      const message = `request line and headers are longer than ${HEADER_BYTES_MAX} bytes`;
      throw new MalformedRequestError(message);
    }
    if (end < 0) {
      this.#checkUnfinishedHead();
      return null;
    }
    this.#searchedBytes = 0;
    this.#host.headWatch.stop(this.destroy);
    const rest = end + HEAD_END.length;
    this.#input = rest === input.length ? NOTHING : input.subarray(rest);
    const text = input.toString("latin1", 0, end);
    if (text === this.#headText) return this.#head!;
    const head = parseRequestHead(text);
    if (text.length <= KEPT_HEAD_BYTES_MAX) [this.#head, this.#headText] = [head, text];
    return head;
  }

  /** Skips empty lines before a request (RFC 9112 section 2.2). */
  #skipLineEnds(): void {
    let start = 0;
    while (this.#input[start] === CR && this.#input[start + 1] === LF) start += 2;
    if (start === 0) return;
    this.#input = this.#input.subarray(start);
    this.#searchedBytes = 0;
    this.#host.headWatch.stop(this.destroy);
  }

  /** Rejects a malformed head before it is complete. */
  #checkUnfinishedHead(): void {
    const sizeBytes = this.#input.length;
    if (sizeBytes === 0) return;
    const searchedBytes = this.#searchedBytes;
    // If the checked input ended with a CR, recheck the CR together with the next byte.
    const start = this.#input[searchedBytes - 1] === CR ? searchedBytes - 1 : searchedBytes;
    checkHeadText(this.#input.toString("latin1", start));
    if (searchedBytes === 0) this.#host.headWatch.start(this.destroy);
    this.#searchedBytes = sizeBytes;
  }

  /** Serves one request, then starts the next. Never rejects. */
  async #serve(head: RequestHead): Promise<void> {
    this.#isBusy = true;
    this.#stopIdle();
    const body = this.#beginBody(head);
    let keepsAlive = false;
    let response: HttpResponse | undefined;
    try {
      response = await this.#host.handler({
        method: head.method,
        target: head.target,
        bodyBytes: head.bodyBytes,
        isHttp11: head.isHttp11,
        header: (name) => head.headers.get(name) ?? null,
        read: () => body.read(),
        client: () => this.#clientState(),
      });
      if (response.isEndless === true) {
        this.#isAnsweringEndlessly = true;
        // The input is read only to detect when the client disconnects.
        this.#ignoreInput();
        if (this.#hasEnded) this.destroy();
      }
      this.#unauthorized = response.status === 401 ? this.#unauthorized + 1 : 0;
      keepsAlive = this.#keepsAlive(head, body, response);
      const written = this.#writer.write(response, keepsAlive, head.isHttp11);
      const isWhole = written instanceof Promise ? await written : written;
      if (!isWhole) return this.#finish();
    } catch (error) {
      const name = error instanceof Error ? error.name : typeof error;
      this.#host.report(`response aborted: ${name}`);
      return this.destroy();
    } finally {
      response?.onEnd?.();
    }
    if (!keepsAlive) return this.#linger();
    this.#body = null;
    if (this.#input.length > 0) await this.#host.turns.next();
    this.#isBusy = false;
    if (this.#host.isClosing || this.#socket.destroyed) return this.#finish();
    this.#host.idleWatch.start(this.destroy);
    if (this.#input.length > 0 || this.#hasEnded) this.#takeRequest();
    if (!this.#isBusy) this.#socket.resume();
  }

  #clientState(): ReturnType<HttpRequest["client"]> {
    if (this.#socket.destroyed) return "gone";
    return this.#hasEnded || this.#socket.isPaused() ? "unknown" : "here";
  }

  #beginBody(head: RequestHead): IncomingBody {
    const { turns, bodyWatch } = this.#host;
    const body = new IncomingBody(head.bodyBytes, this.#socket, turns, bodyWatch, () => {
      if (head.expectsContinue && !body.isComplete) this.#writer.writeContinue();
    });
    this.#body = body;
    if (!body.isComplete && this.#input.length > 0) {
      const input = this.#input;
      const end = body.push(input);
      this.#input = end === input.length ? NOTHING : input.subarray(end);
    }
    if (this.#hasEnded) body.fail(CONNECTION_LOST);
    return body;
  }

  /** Whether another request may follow this one. Its start is unknown until the body's end. */
  #keepsAlive(head: RequestHead, body: IncomingBody, response: HttpResponse): boolean {
    const isLast = this.#hasEnded && this.#input.length === 0;
    return head.keepsAlive && body.isComplete && !isLast && !this.#host.isClosing &&
      this.#unauthorized < UNAUTHORIZED_MAX && response.headers["connection"] !== "close";
  }

  /** Responds to a malformed request and closes. */
  #refuse(error: MalformedRequestError, isHead: boolean): void {
    this.#host.headWatch.stop(this.destroy);
    const keepsAlive = false;
    this.#writer.write(this.#host.refusal(error, isHead), keepsAlive, keepsAlive);
    this.#linger();
  }

  /** Closes the connection after writing all output. Ignores further input. */
  #finish(): void {
    this.#lingeredBytes ??= 0;
    if (!this.#socket.destroyed) this.#host.writeWatch.start(this.destroy);
    this.#socket.destroySoon();
  }

  /**
   * Half-closes the connection and drops input for a while, so that a client that is still sending
   * can read its response (RFC 9112 section 9.6). A shutdown skips this.
   */
  #linger(): void {
    this.#isBusy = false;
    this.#isAnsweringEndlessly = false;
    if (this.#hasEnded || this.#host.isClosing) return this.#finish();
    this.#ignoreInput();
    this.#host.writeWatch.start(this.destroy);
    let timer: ReturnType<typeof setTimeout> | undefined;
    this.#socket.end(() => timer = setTimeout(this.destroy, DRAIN_TIMEOUT_MS));
    this.#socket.once("close", () => clearTimeout(timer));
  }

  #ignoreInput(): void {
    this.#input = NOTHING;
    this.#lingeredBytes ??= 0;
    this.#socket.resume();
  }

  /** Handles a half-close by the client, which may still be reading. */
  #endInput(): void {
    this.#hasEnded = true;
    this.#body?.fail(CONNECTION_LOST);
    if (this.#isAnsweringEndlessly) this.destroy();
    else if (!this.#isBusy) this.#finish();
  }

  #stopIdle(): void {
    this.#host.newWatch.stop(this.destroy);
    this.#host.idleWatch.stop(this.destroy);
  }

  #close(): void {
    this.#stopIdle();
    this.#host.headWatch.stop(this.destroy);
    this.#host.writeWatch.stop(this.destroy);
    this.#body?.fail(CONNECTION_LOST);
  }
}

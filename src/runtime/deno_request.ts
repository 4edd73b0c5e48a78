/** A request of `Deno.serve` as the handler sees it. */
import { ConnectionLostError, type HttpRequest } from "../http/message.ts";
import type { BodySource } from "./drain.ts";

/** Deno's server shows an origin-form target as this, the host, and the target as it came. */
const UNIX_SCHEME = "http+unix://";

export class DenoRequest implements HttpRequest, BodySource {
  readonly #request: Request;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  #isRead = false;

  constructor(request: Request) {
    this.#request = request;
  }

  get method(): string {
    return this.#request.method;
  }

  get target(): string {
    const { url } = this.#request;
    // An absolute-form target is shown as it is.
    if (!url.startsWith(UNIX_SCHEME)) return url;
    const host = this.header("host") ?? "";
    // Without a host stands the encoded path of the socket, which has no slash.
    const start = UNIX_SCHEME.length;
    return url.slice(host === "" ? url.indexOf("/", start) : start + host.length);
  }

  header(name: string): string | null {
    return this.#request.headers.get(name);
  }

  async *body(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = await this.next();
      if (piece === null) return;
      yield piece;
    }
  }

  async bytes(): Promise<Uint8Array> {
    this.#isRead = true;
    try {
      return await this.#request.bytes();
    } catch (error) {
      throw connectionLost(error);
    }
  }

  async next(): Promise<Uint8Array | null> {
    this.#reader ??= this.#request.body?.getReader() ?? null;
    if (this.#reader === null) return null;
    try {
      const { value } = await this.#reader.read();
      if (value === undefined) this.#isRead = true;
      return value ?? null;
    } catch (error) {
      throw connectionLost(error);
    }
  }

  cancel(): void {
    // Fails when the connection is gone already, which is as good.
    this.#reader?.cancel().catch(() => {});
  }

  /** Whether the client wants the connection to be closed after the response. */
  get asksForClose(): boolean {
    return /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(this.header("connection") ?? "");
  }

  /** Whether some of the body may still be to come. Deno reads that of a GET or HEAD itself. */
  get hasUnreadBody(): boolean {
    return !this.#isRead && this.#request.body !== null;
  }
}

function connectionLost(cause: unknown): ConnectionLostError {
  return new ConnectionLostError("the connection ended before the body did", { cause });
}

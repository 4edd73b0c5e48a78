/** A request of `node:http` as the handler sees it. */
import type { IncomingMessage } from "node:http";
import type { HttpRequest } from "../http/message.ts";
import { NodeBody } from "./node_body.ts";

export class NodeRequest implements HttpRequest {
  readonly #incoming: IncomingMessage;
  readonly #body: NodeBody;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
    this.#body = new NodeBody(incoming);
  }

  get method(): string {
    return this.#incoming.method ?? "";
  }

  get target(): string {
    return this.#incoming.url ?? "";
  }

  header(name: string): string | null {
    const value = this.#incoming.headers[name];
    return value === undefined ? null : String(value);
  }

  async *body(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = await this.#body.next();
      if (piece === null) return;
      yield piece;
    }
  }

  bytes(): Promise<Uint8Array> {
    return this.#body.bytes();
  }

  /** The body, where some of it is still to come. */
  get unreadBody(): NodeBody | null {
    const { headers, complete } = this.#incoming;
    const hasBody = "content-length" in headers || "transfer-encoding" in headers;
    return hasBody && !complete ? this.#body : null;
  }
}

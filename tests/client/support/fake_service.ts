/** A service of the test's choice on a Unix socket: each request is answered by the next reply. */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import {
  EventLogClient,
  type EventLogClientOptions,
} from "../../../src/client/event_log_client.ts";
import type { Timing } from "../../../src/client/timing.ts";
import { unixFetch } from "../../../src/client/unix_fetch.ts";
import { withFolder } from "../../../tools/support/program.ts";

/** A request as it arrived. */
export interface SeenRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: IncomingMessage["headers"];
  body: string;
}

/** Answers one request. */
export type Reply = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

/** Time that passes only in pauses, and chance without surprises. */
export class FakeTiming implements Timing {
  /** Length of each pause so far, in milliseconds. */
  readonly pausesMs: number[] = [];
  #nowMs = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  sleep(durationMs: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    this.pausesMs.push(durationMs);
    this.#nowMs += durationMs;
    return Promise.resolve();
  }

  random(): number {
    return 1;
  }

  /** Lets time pass. */
  advance(durationMs: number): void {
    this.#nowMs += durationMs;
  }
}

export interface Faked {
  client: EventLogClient;
  timing: FakeTiming;
  /** All requests so far. */
  seen: SeenRequest[];
}

/** Runs `use` with a client of a service that gives these replies, the last one again and again. */
export async function withFakeService(
  replies: Reply[],
  use: (faked: Faked) => Promise<void>,
  options: EventLogClientOptions = {},
): Promise<void> {
  const seen: SeenRequest[] = [];
  const server = createServer(async (request, response) => {
    const reply = replies[Math.min(seen.length, replies.length - 1)]!;
    const { pathname, searchParams } = new URL(request.url!, "http://localhost");
    const query = Object.fromEntries(searchParams);
    const { method, headers } = request;
    const arrived = { method: method!, path: pathname, query, headers, body: "" };
    seen.push(arrived);
    arrived.body = await readAll(request);
    await reply(response, arrived);
  });
  await withFolder(async (folder) => {
    const socketPath = join(folder, "s.sock");
    await once(server.listen(socketPath), "listening");
    const timing = new FakeTiming();
    const client = new EventLogClient(unixFetch(socketPath), { timing, ...options });
    try {
      await use({ client, timing, seen });
    } finally {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    }
  });
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Answers with a JSON document. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return (response) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify(body));
}

/** Answers with an error document. */
export function refuse(
  status: number,
  error: string,
  context: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Reply {
  return json(status, { error, message: `${error} happened`, ...context }, headers);
}

/** Closes the connection instead of answering. */
export const loseConnection: Reply = (response) => void response.destroy();

/** Never answers. */
export const keepSilent: Reply = () => {};

/** Answers with lines of NDJSON and then ends, or loses the connection. */
export function lines(records: unknown[], then: "end" | "lose" | "stay" = "end"): Reply {
  return (response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.flushHeaders();
    const text = records.map((record) => JSON.stringify(record) + "\n").join("");
    response.write(text, () => {
      if (then === "end") response.end();
      if (then === "lose") response.destroy();
    });
  };
}

/** The id of the n-th event of a fake log. */
export function eventId(n: number): string {
  return `01900000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
}

/** Events of a fake log, told apart by their ids alone. */
export function events(from: number, to: number): { event_id: string }[] {
  const all: { event_id: string }[] = [];
  for (let n = from; n <= to; n++) all.push({ event_id: eventId(n) });
  return all;
}

/** Collects what an iteration yields. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/**
 * A scripted service on a Unix socket. Each request gets the next scripted reply, except those that
 * check whether the log contains an event.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type Batch, EventLogClient } from "../../../src/client/event_log_client.ts";
import type { EventLogClientOptions } from "../../../src/client/transport.ts";
import type { Timing } from "../../../src/client/retry.ts";
import { unixFetch } from "../../../src/client/unix_fetch.ts";
import { withFolder } from "../../../tools/support/program.ts";

/** A received request. */
export interface SeenRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: IncomingMessage["headers"];
  body: string;
}

/** Responds to one request. */
export type Reply = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

/** A clock that advances only during pauses, and deterministic randomness. */
export class FakeTiming implements Timing {
  /** Requested pauses so far, in milliseconds. */
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

  /** Advances the clock. */
  advance(durationMs: number): void {
    this.#nowMs += durationMs;
  }
}

export interface Faked {
  client: EventLogClient;
  socketPath: string;
  timing: FakeTiming;
  /** All requests so far, except checks of positions. */
  seen: SeenRequest[];
  /** Positions checked so far. */
  checked: string[];
  /** Ids that are not in the log; all others are. */
  lost: Set<string>;
}

/** Runs `use` with a client of a service that sends these replies, then repeats the last one. */
export async function withFakeService(
  replies: Reply[],
  use: (faked: Faked) => Promise<void>,
  options: EventLogClientOptions = {},
): Promise<void> {
  const seen: SeenRequest[] = [];
  const checked: string[] = [];
  const lost = new Set<string>();
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://localhost");
    const query = Object.fromEntries(searchParams);
    if (query.limit === "1" && query.after !== undefined) {
      const id = `${query.after.slice(0, -12)}${nextHex(query.after.slice(-12))}`;
      checked.push(id);
      const events = lost.has(id) ? [] : [{ event_id: id, event_hash: hashOf(id) }];
      const frontier = { next_after: LAST, snapshot_through_event_id: LAST };
      return void response.end(JSON.stringify({ events, ...frontier }));
    }
    const reply = replies[Math.min(seen.length, replies.length - 1)]!;
    const { method, headers } = request;
    const arrived = { method: method!, path: pathname, query, headers, body: "" };
    seen.push(arrived);
    arrived.body = await text(request);
    await reply(response, arrived);
  });
  await withListening(server, async (socketPath) => {
    const timing = new FakeTiming();
    const client = new EventLogClient(unixFetch(socketPath), { timing, ...options });
    await use({ client, socketPath, timing, seen, checked, lost });
  });
}

/** Runs `use` while a server listens on a socket, then closes its connections. */
export async function withListening(
  server: Server,
  use: (socketPath: string, connections: () => number) => Promise<void>,
): Promise<void> {
  await withFolder(async (folder) => {
    const socketPath = join(folder, "s.sock");
    const sockets: Socket[] = [];
    server.on("connection", (socket: Socket) => sockets.push(socket));
    await once(server.listen(socketPath), "listening");
    try {
      await use(socketPath, () => sockets.length);
    } finally {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    }
  });
}

/** Replies with a JSON document. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return (response) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify(body));
}

/** Replies with an error document. */
export function refuse(
  status: number,
  error: string,
  context: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Reply {
  return json(status, { error, message: `${error} happened`, ...context }, headers);
}

/** Closes the connection without replying. */
export const loseConnection: Reply = (response) => void response.destroy();

/** Never replies. */
export const keepSilent: Reply = () => {};

/** Replies with NDJSON lines, then ends or breaks the connection. */
export function lines(records: unknown[], then: "end" | "lose" | "stay" = "end"): Reply {
  return (response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.flushHeaders();
    const body = records.map((record) => JSON.stringify(record) + "\n").join("");
    response.write(body, () => {
      if (then === "end") response.end();
      if (then === "lose") response.destroy();
    });
  };
}

/** The id of the nth event in a fake log. */
export function eventId(n: number): string {
  return `01900000-0000-7000-8000-1${n.toString(16).padStart(11, "0")}`;
}

/** The last event in the log, as reported by checks of positions. */
const LAST = "01900000-0000-7000-8000-ffffffffffff";

function nextHex(digits: string): string {
  return (parseInt(digits, 16) + 1).toString(16).padStart(digits.length, "0");
}

/** The hash of an event, as reported by checks of positions. */
export function hashOf(id: string): string {
  return id.replaceAll("-", "").repeat(2);
}

/** Events in a fake log. They differ only in their ids. */
export function events(from: number, to: number): { event_id: string }[] {
  return Array.from({ length: to - from + 1 }, (_, index) => ({ event_id: eventId(from + index) }));
}

export const BATCH: Batch = {
  source: "shop",
  batchId: "b1",
  events: [{ stream: "orders", record_key: "1", kind: "upserted", payload: { total: 12.5 } }],
};

export const RECEIPT = {
  status: "committed",
  batch_digest: "0".repeat(64),
  events: 1,
  first_event_id: eventId(1),
  last_event_id: eventId(1),
};

/** A call of each kind. */
export const CALLS: Record<string, (client: EventLogClient) => Promise<unknown>> = {
  append: (client) => client.append(BATCH),
  retire: (client) => client.retire("shop"),
  replay: (client) => collect(client.replay()),
  streams: (client) => client.streams(),
  follow: (client) => collect(client.follow()),
};

/** The error with which a promise rejects, which must be of this class. */
export async function errorOf<E extends Error>(
  Type: new (...args: never[]) => E,
  promise: Promise<unknown>,
): Promise<E> {
  const error = await promise.then(() => null, (reason) => reason);
  assert.ok(error instanceof Type, String(error));
  return error;
}

/** Collects the items from an iteration. */
export function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  return Array.fromAsync(items);
}

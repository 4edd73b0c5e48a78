/**
 * The Redis side of each benchmark row. An event is a stream entry with its JSON as its only field,
 * which is the least work for Redis. Batches are sent in one write, with and without MULTI; only
 * MULTI is atomic.
 */
import { Buffer } from "node:buffer";
import { BatchRequest } from "../support/requests.ts";
import type { Connection } from "./connection.ts";
import { Arrivals, measureArrivals } from "./delivery.ts";
import { eventsOf, eventText } from "./events.ts";
import { type LoadClient, measureLoad } from "./load.ts";
import type { Measurement } from "./measurement.ts";
import { runRedisBenchmark } from "./native_tools.ts";
import { openRedis, type Redis, withRedis } from "./redis_server.ts";
import { encodeCommand, type RespReply } from "./resp.ts";
import {
  type BenchContext,
  FILL_BATCH_EVENTS,
  INGEST_ROWS,
  type IngestRow,
  PAGE_EVENTS,
  type Subject,
  type Variant,
} from "./rows.ts";

const STREAM = "events";
const FIELD = "e";

/** Bytes sent in an exchange, and the number of replies. */
interface Request {
  bytes: Buffer;
  replies: number;
}

export function redisSubject(context: BenchContext): Subject {
  const variant = (name: string, measure: (redis: Redis) => Promise<Measurement>): Variant => ({
    name,
    isSameWork: false,
    measure: () => withRedis(context.folder, measure),
  });
  const ingest = (name: string, row: IngestRow, request: Request) =>
    variant(name, async (redis) => {
      const connections = await openAll(redis, row.clients);
      const clients = connections.map((connection) => writer(connection, request, row.batchEvents));
      return await measureLoad(clients, redis.pid, context);
    });
  const singleVariants = (row: IngestRow) => [
    ingest("XADD", row, pipelined(1)),
    variant(
      "XADD by redis-benchmark",
      (redis) => runRedisBenchmark(redis, row.clients, addWords(1)[0]!, context.measureMs),
    ),
  ];
  const batchVariants = (row: IngestRow) => [
    ingest("XADDs pipelined", row, pipelined(row.batchEvents)),
    ingest("XADDs in MULTI", row, inTransaction(row.batchEvents)),
  ];
  return {
    name: "Redis",
    variantsOf(rowName) {
      const row = INGEST_ROWS[rowName];
      if (row !== undefined) {
        return row.batchEvents === 1 ? singleVariants(row) : batchVariants(row);
      }
      switch (rowName) {
        case "replay-tail":
          return [variant("XRANGE", (redis) => measureReplay(redis, context))];
        case "deliver":
          return [variant("XREAD BLOCK", (redis) => measureDelivery(redis, context))];
        default:
          return [];
      }
    },
  };
}

function openAll(redis: Redis, count: number): Promise<Connection<RespReply>[]> {
  return Promise.all(Array.from({ length: count }, () => openRedis(redis)));
}

function addWords(events: number): string[][] {
  const request = new BatchRequest("redis", events).next();
  return eventsOf(request).map((event) => ["XADD", STREAM, "*", FIELD, eventText(event)]);
}

function pipelined(events: number): Request {
  return { bytes: Buffer.concat(addWords(events).map(encodeCommand)), replies: events };
}

function inTransaction(events: number): Request {
  const { bytes, replies } = pipelined(events);
  const [begin, end] = [encodeCommand(["MULTI"]), encodeCommand(["EXEC"])];
  return { bytes: Buffer.concat([begin, bytes, end]), replies: replies + 2 };
}

function writer(
  connection: Connection<RespReply>,
  { bytes, replies }: Request,
  events: number,
): LoadClient {
  return {
    exchange: (done, failed) => connection.send(bytes, replies, () => done(events), failed),
    close: () => connection.close(),
  };
}

/** Reads the stream page by page, repeatedly. */
function reader(connection: Connection<RespReply>, logEvents: number): LoadClient {
  let start = "-";
  let readEvents = 0;
  return {
    exchange(done, failed) {
      const words = ["XRANGE", STREAM, start, "+", "COUNT", String(PAGE_EVENTS)];
      connection.send(encodeCommand(words), 1, ({ entries, lastId }) => {
        const expected = Math.min(PAGE_EVENTS, logEvents - readEvents);
        if (entries !== expected) {
          return failed(new Error(`a page has ${entries} entries, expected ${expected}`));
        }
        readEvents += entries;
        start = `(${lastId}`;
        if (readEvents === logEvents) [start, readEvents] = ["-", 0];
        done(entries);
      }, failed);
    },
    close: () => connection.close(),
  };
}

async function measureReplay(redis: Redis, context: BenchContext): Promise<Measurement> {
  const connection = await openRedis(redis);
  const { bytes, replies } = pipelined(FILL_BATCH_EVENTS);
  const batches = Math.ceil(context.replayEvents / FILL_BATCH_EVENTS);
  for (let batch = 0; batch < batches; batch++) await connection.exchange(bytes, replies);
  const clients = [reader(connection, batches * FILL_BATCH_EVENTS)];
  return await measureLoad(clients, redis.pid, context);
}

async function measureDelivery(redis: Redis, context: BenchContext): Promise<Measurement> {
  const [sender, follower] = await openAll(redis, 2);
  const { bytes, replies } = pipelined(1);
  const arrivals = new Arrivals();
  const failed = follow(follower!, arrivals);
  const send = async () => {
    await sender!.exchange(bytes, replies);
  };
  try {
    return await measureArrivals({ serverPid: redis.pid, send, failed }, arrivals, context);
  } finally {
    sender!.close();
    follower!.close();
  }
}

/** Requests the next entries as soon as some have arrived; rejects when that fails. */
function follow(connection: Connection<RespReply>, arrivals: Arrivals): Promise<never> {
  return new Promise((_, reject) => {
    const askAfter = (id: string) => {
      const words = ["XREAD", "BLOCK", "0", "STREAMS", STREAM, id];
      connection.send(encodeCommand(words), 1, ({ entries, lastId }) => {
        // The stream's name precedes its entries as an id precedes its fields.
        arrivals.markReceived(entries - 1);
        askAfter(lastId);
      }, reject);
    };
    askAfter("0");
  });
}

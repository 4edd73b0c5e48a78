/**
 * Redis as a durable log. An event is a stream entry with its JSON as its only field, which is the
 * least work for Redis. A batch is pipelined.
 */
import type { Buffer } from "node:buffer";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { DeliveryTimes, sendAndMeasure } from "../support/delivery.ts";
import { type Exchange, runLoops } from "../support/load.ts";
import { PAGE_EVENTS } from "../support/requests.ts";
import { INGEST_LOADS, type IngestLoad } from "../support/workloads.ts";
import { type Measurement, measurementOf, measureTool } from "./measurement.ts";
import { findPeer, runPeer, withPeer } from "./peer_process.ts";
import { type BenchContext, eventsOf, type Variant } from "./rows.ts";

/** A reply means that the data is on disk. Snapshots and rewrites are off. */
const SETTINGS = ["--port", "0", "--appendonly", "yes", "--appendfsync", "always"];
SETTINGS.push("--save", "", "--auto-aof-rewrite-percentage", "0");

const [STREAM, FIELD] = ["events", "e"];
const ADD_NUMBERED = `for i = 1, tonumber(ARGV[1]) do ` +
  `redis.call('XADD', KEYS[1], '0-' .. i, '${FIELD}', ARGV[2]) end`;
const PAGE_END = "\r\n+PONG\r\n";

interface Redis {
  socketPath: string;
  pid: number;
}

type Measure = (redis: Redis, context: BenchContext) => Promise<Measurement>;

export function redisVariants(row: string, context: BenchContext): Variant[] {
  const variant = (name: string, measureOne: Measure): Variant => {
    const measure = () => withRedis(context.folder, (redis) => measureOne(redis, context));
    return { row, subject: "Redis", variant: name, measure };
  };
  if (row === "replay-tail") return [variant("XRANGE", measureReplay)];
  if (row === "deliver") return [variant("XREAD BLOCK", measureDelivery)];
  const ingest = INGEST_LOADS[row]!;
  const appends = (name: string, command: string[], pipelined: number) =>
    variant(name, (redis) => measureAppends(redis, command, { ...ingest, pipelined }, context));
  const add = ["XADD", STREAM, "*", FIELD, JSON.stringify(eventsOf(1)[0])];
  return [appends(ingest.batchEvents === 1 ? "XADD" : "XADDs", add, ingest.batchEvents)];
}

function openClient(path: string) {
  const client = createClient({ socket: { path, tls: false, reconnectStrategy: false } });
  // A failed command rejects, too.
  return client.on("error", () => {}).connect();
}

/** Runs `use` with a new Redis in a temporary directory. */
async function withRedis<T>(parent: string, use: (redis: Redis) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(parent, "redis-"));
  const socketPath = join(folder, "socket");
  const places = ["--dir", folder, "--unixsocket", socketPath];
  const command = [findPeer("redis-server")!, ...SETTINGS, ...places];
  const isReady = async () => (await openClient(socketPath)).destroy();
  try {
    return await withPeer(command, isReady, (pid) => use({ socketPath, pid }));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** @param command appends a batch, or one event of a batch whose commands are pipelined. */
function measureAppends(
  { socketPath, pid: serverPid }: Redis,
  command: string[],
  { clients, batchEvents: requestEvents, pipelined }: IngestLoad & { pipelined: number },
  context: BenchContext,
): Promise<Measurement> {
  const tool = [findPeer("redis-benchmark")!, "-s", socketPath, "--csv", "-c", `${clients}`];
  return measureTool({ serverPid, clients, requestEvents }, context, async (requests) => {
    const counts = ["-P", `${pipelined}`, "-n", `${requests * clients * pipelined}`];
    const output = await runPeer([...tool, ...counts, ...command]);
    // Counted from the end, because the first cell is the command, which contains separators.
    const [rate] = output.split('","').slice(-7).map(parseFloat);
    if (!(rate! > 0)) throw new Error(`redis-benchmark printed no rate: ${output}`);
    return { eventsPerSecond: rate! * requestEvents / pipelined };
  });
}

/**
 * Reads the stream page by page, repeatedly. Clients and `redis-benchmark` take longer to parse a
 * page than Redis to send it, so this sends plain commands and waits for the reply to the last.
 */
const measureReplay: Measure = async ({ socketPath, pid: serverPid }, context) => {
  const { replayEvents } = context;
  const text = JSON.stringify(eventsOf(1)[0]);
  const client = await openClient(socketPath);
  await client.eval(ADD_NUMBERED, { keys: [STREAM], arguments: [`${replayEvents}`, text] });
  client.destroy();
  const socket = connect(socketPath);
  let from = 0;
  const readPage: Exchange = (done, failed) => {
    let [bytes, end] = [0, ""];
    const take = (data: Buffer) => {
      bytes += data.length;
      end = (end + data.subarray(-PAGE_END.length).toString("latin1")).slice(-PAGE_END.length);
      if (end !== PAGE_END) return;
      socket.removeAllListeners("data").removeAllListeners("close");
      if (bytes < PAGE_EVENTS * text.length) return failed(new Error(`a page has ${bytes} bytes`));
      from = (from + PAGE_EVENTS) % replayEvents;
      done(PAGE_EVENTS);
    };
    socket.on("data", take).on("close", () => failed(new Error("Redis closed the connection")));
    socket.write(`XRANGE ${STREAM} 0-${from + 1} + COUNT ${PAGE_EVENTS}\r\nPING\r\n`);
  };
  const load = await runLoops([readPage], { ...context, serverPid });
  socket.destroy();
  return measurementOf(load);
};

const measureDelivery: Measure = async ({ socketPath, pid: serverPid }, context) => {
  const [sender, follower] = [await openClient(socketPath), await openClient(socketPath)];
  const times = new DeliveryTimes();
  const follow = async (): Promise<never> => {
    for (let id = "0";;) {
      const [stream] = await follower.xRead({ key: STREAM, id }, { BLOCK: 0 }) as {
        messages: { id: string }[];
      }[];
      times.receive(stream!.messages.length);
      id = stream!.messages.at(-1)!.id;
    }
  };
  const message = { [FIELD]: JSON.stringify(eventsOf(1)[0]) };
  const send = () => sender.xAdd(STREAM, "*", message);
  try {
    const sending = sendAndMeasure(send, times, { ...context, serverPid });
    const result = await Promise.race([follow(), sending]);
    return measurementOf({ ...result, latencies: result.fromSend });
  } finally {
    sender.destroy();
    follower.destroy();
  }
};

/**
 * Redis as a durable log. An event is a stream entry with its JSON as its only field, which is the
 * least work for Redis. A batch is pipelined, or appended by a script, which is atomic.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { DeliveryTimes, sendAndMeasure } from "../support/delivery.ts";
import { BENCH_SOURCE } from "../support/requests.ts";
import { measureLoops, type Measurement, measurementOf, measureTool } from "./measurement.ts";
import { requirePeer, runPeer, withPeer } from "./peer_process.ts";
import { type BenchContext, DELIVERY, eventsOf, INGEST_ROWS, PAGE_EVENTS } from "./rows.ts";
import type { IngestRow, Variant } from "./rows.ts";

/** A reply means that the data is on disk. Snapshots and rewrites are off. */
const SETTINGS = ["--port", "0", "--appendonly", "yes", "--appendfsync", "always"];
SETTINGS.push("--save", "", "--auto-aof-rewrite-percentage", "0");

const [STREAM, FIELD] = ["events", "e"];
const ADD_ALL = `for i = 1, #ARGV do redis.call('XADD', KEYS[1], '*', '${FIELD}', ARGV[i]) end`;
const ADD_NUMBERED = `for i = 1, tonumber(ARGV[1]) do ` +
  `redis.call('XADD', KEYS[1], '0-' .. i, '${FIELD}', ARGV[2]) end`;
const PAGE_END = "\r\n+PONG\r\n";

interface Redis {
  socketPath: string;
  pid: number;
}

export function redisVariants(row: string, context: BenchContext): Variant[] {
  const variant = (name: string, measure: (redis: Redis) => Promise<Measurement>): Variant => {
    return { row, subject: "Redis", variant: name, measure: () => withRedis(context, measure) };
  };
  if (row === "replay-tail") return [variant("XRANGE", (redis) => measureReplay(redis, context))];
  if (row === "deliver") {
    return [variant("XREAD BLOCK", (redis) => measureDelivery(redis, context))];
  }
  const ingest = INGEST_ROWS[row]!;
  const appends = (name: string, command: string[], pipelined: number) =>
    variant(name, (redis) => measureAppends(redis, command, { ...ingest, pipelined }, context));
  const texts = eventsOf(ingest.batchEvents).map(textOf);
  const add = ["XADD", STREAM, "*", FIELD, texts[0]!];
  if (ingest.batchEvents === 1) return [appends("XADD", add, 1)];
  return [
    appends("XADDs pipelined", add, ingest.batchEvents),
    appends("XADDs in a script", ["EVAL", ADD_ALL, "1", STREAM, ...texts], 1),
  ];
}

function textOf(event = eventsOf(1)[0]): string {
  return JSON.stringify({ source: BENCH_SOURCE, ...event });
}

function openClient(path: string) {
  const client = createClient({ socket: { path, tls: false, reconnectStrategy: false } });
  // A failed command rejects, too.
  return client.on("error", () => {}).connect();
}

/** Runs `use` with a new Redis in a temporary directory. */
async function withRedis<T>(
  { folder: parent }: BenchContext,
  use: (redis: Redis) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(parent, "redis-"));
  const socketPath = join(folder, "socket");
  const places = ["--dir", folder, "--unixsocket", socketPath];
  const command = [requirePeer("redis-server"), ...SETTINGS, ...places];
  const isReady = async () => (await openClient(socketPath)).destroy();
  try {
    return await withPeer(command, isReady, "SIGTERM", (pid) => use({ socketPath, pid }));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** @param command appends a batch, or one event of a batch whose commands are pipelined. */
function measureAppends(
  { socketPath, pid }: Redis,
  command: string[],
  { clients, batchEvents, pipelined }: IngestRow & { pipelined: number },
  { measureMs }: BenchContext,
): Promise<Measurement> {
  const tool = [requirePeer("redis-benchmark"), "-s", socketPath, "--csv"];
  return measureTool(
    async (requests) => {
      const commands = requests * clients * pipelined;
      const counts = ["-c", `${clients}`, "-P", `${pipelined}`, "-n", `${commands}`];
      const output = await runPeer([...tool, ...counts, ...command]);
      // Counted from the end, because the first cell is the command, which contains separators.
      const [rate, , , p50Ms, , p99Ms] = output.split('","').slice(-7).map(parseFloat);
      if (!(rate! > 0)) throw new Error(`redis-benchmark printed no rate: ${output}`);
      const eventsPerSecond = rate! * batchEvents / pipelined;
      return { eventsPerSecond, p50Ms: p50Ms!, p99Ms: p99Ms! };
    },
    batchEvents,
    clients,
    pid,
    measureMs,
  );
}

/**
 * Reads the stream page by page, repeatedly. Clients and `redis-benchmark` take longer to parse a
 * page than Redis to send it, so this sends plain commands and waits for the reply to the last.
 */
async function measureReplay({ socketPath, pid }: Redis, context: BenchContext) {
  const { replayEvents } = context;
  const client = await openClient(socketPath);
  const text = textOf();
  await client.eval(ADD_NUMBERED, { keys: [STREAM], arguments: [`${replayEvents}`, text] });
  client.destroy();
  const socket = connect(socketPath);
  const closed = new AbortController();
  socket.on("close", () => closed.abort());
  let from = 0;
  const readPage = async () => {
    socket.write(`XRANGE ${STREAM} 0-${from + 1} + COUNT ${PAGE_EVENTS}\r\nPING\r\n`);
    let [bytes, end] = [0, ""];
    while (!end.endsWith(PAGE_END)) {
      const [data] = await once(socket, "data", closed);
      bytes += data.length;
      end = (end + data.subarray(-PAGE_END.length).toString("latin1")).slice(-PAGE_END.length);
    }
    if (bytes < PAGE_EVENTS * text.length) throw new Error(`a page has only ${bytes} bytes`);
    from = (from + PAGE_EVENTS) % replayEvents;
    return PAGE_EVENTS;
  };
  return await measureLoops([readPage], pid, context).finally(() => socket.destroy());
}

type Streams = { messages: { id: string }[] }[] | null;

async function measureDelivery({ socketPath, pid: serverPid }: Redis, context: BenchContext) {
  const [sender, follower] = [await openClient(socketPath), await openClient(socketPath)];
  const times = new DeliveryTimes();
  const received = times.receiver();
  const follow = async (): Promise<never> => {
    for (let id = "0";;) {
      const streams = await follower.xRead({ key: STREAM, id }, { BLOCK: 0 }) as Streams;
      const messages = streams?.[0]?.messages ?? [];
      received(messages.length);
      id = messages.at(-1)?.id ?? id;
    }
  };
  const message = { [FIELD]: textOf() };
  const send = () => sender.xAdd(STREAM, "*", message);
  try {
    const sending = sendAndMeasure(send, times, { ...DELIVERY, ...context, serverPid });
    const result = await Promise.race([follow(), sending]);
    return measurementOf({ ...result, latencies: result.fromSend });
  } finally {
    sender.destroy();
    follower.destroy();
  }
}

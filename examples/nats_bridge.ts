/**
 * A consumer: carries the log into a stream of NATS JetStream, for as long as it runs.
 *
 *     node examples/nats_bridge.ts --socket demo/data/ground.sock --nats nats://127.0.0.1:4222
 *     deno task example:nats-bridge demo/data/ground.sock
 *     nats stream view ground
 *
 * Message n of the stream is event n of the log, the same bytes, with the event's id as message id;
 * docs/integrations.md tells how subjects are made. It may be killed at any moment, and so may the
 * service and NATS: every event is in the stream once and in order, because
 *
 * - the bridge goes on after the event that the stream's last message names, however long ago that
 *   was, and not after what it remembers;
 * - each message is stored only if the stream ends with the one before it;
 * - NATS recognizes a message id that it had within its duplicate window.
 *
 * The cursor in the key-value bucket is written after the answers to all that it stands for. It is
 * for people, and for when the last message has been removed as too old.
 */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type CommittedEvent, EventLogClient, type Reconnect, unixFetch } from "../mod.ts";
import { isInLog } from "./support/is_in_log.ts";
import { BridgeError, isFinal } from "./support/nats_failures.ts";
import { NatsPipeline } from "./support/nats_pipeline.ts";
import {
  type NatsTarget,
  openTarget,
  type StreamPosition,
  type TargetOptions,
} from "./support/nats_target.ts";
import { runExample, UsageError } from "./support/run_example.ts";

const USAGE = `usage: nats_bridge --socket SOCKET [--nats URL] [--stream NAME] [--bucket NAME]
                   [--token TOKEN]
       nats_bridge SOCKET

  --socket SOCKET  socket of the service
  --nats URL       nats://[user:password@]host[:port], several separated by commas (default
                   the variable NATS_URL, else nats://127.0.0.1:4222)
  --stream NAME    stream of NATS, made if it is not there (default ground)
  --bucket NAME    key-value bucket for the cursor, made if it is not there (default cursors)
  --token TOKEN    bearer token, if the service asks for one`;

const CURSOR_INTERVAL_MS = 500;
/** The pause after the first failure; it doubles with each further one. */
const PAUSE_MS = 100;
const PAUSE_MS_MAX = 5000;
/** Of streams, buckets and their keys alike. */
const NATS_NAME = /^[A-Za-z0-9_-]{1,128}$/;

interface Options extends TargetOptions {
  client: EventLogClient;
}

function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      socket: { type: "string" },
      nats: { type: "string" },
      stream: { type: "string", default: "ground" },
      bucket: { type: "string", default: "cursors" },
      token: { type: "string" },
    },
  });
  const operands = [...positionals];
  const socket = values.socket ?? operands.shift();
  if (socket === undefined || operands.length > 0) throw new UsageError("a socket is needed");
  const { stream, bucket, token } = values;
  for (const name of [stream, bucket]) {
    if (!NATS_NAME.test(name)) throw new UsageError(`NATS takes no name like ${name}`);
  }
  const servers = values.nats ?? process.env.NATS_URL ?? "nats://127.0.0.1:4222";
  if (!servers.split(",").every((url) => URL.canParse(url))) {
    throw new UsageError("--nats takes URLs");
  }
  // Who waits for more also waits for the service.
  const means = { attemptsMax: Infinity, ...(token !== undefined && { token }) };
  return { client: new EventLogClient(unixFetch(socket), means), stream, bucket, servers };
}

/** Carries events over one connection to NATS until the signal stops it or something fails. */
async function carry(
  { client }: Options,
  target: NatsTarget,
  stop: AbortSignal,
): Promise<void> {
  const start = await target.position();
  await checkLog(client, start, stop);
  const failed = new AbortController();
  const signal = AbortSignal.any([stop, failed.signal]);
  const fail = (error: unknown) => failed.abort(error);
  target.connection.closed().then((error) => fail(error ?? new Error("NATS has gone away")), fail);
  const pipeline = new NatsPipeline(target, start, fail);
  const save = cursorSaver(target, pipeline);
  const saving = saveNowAndThen(save, signal).catch(fail);
  try {
    const records = client.followRecords({ after: start.eventId, signal, onReconnect: report });
    for await (const record of records) {
      if (record.type === "end") throw new BridgeError(`${record.reason}: ${record.detail}`);
      if (record.type === "events") await publishAll(record.events, pipeline, signal);
    }
  } finally {
    await pipeline.drain();
    failed.abort();
    await saving;
    if (!target.connection.isClosed()) await save();
  }
}

async function publishAll(
  events: CommittedEvent[],
  pipeline: NatsPipeline,
  signal: AbortSignal,
): Promise<void> {
  for (const event of events) {
    signal.throwIfAborted();
    await pipeline.publish(event);
  }
}

async function checkLog(
  client: EventLogClient,
  { eventId, sequence }: StreamPosition,
  stop: AbortSignal,
): Promise<void> {
  if (eventId === null || await isInLog(client, eventId, stop)) return;
  throw new BridgeError(
    `event ${eventId}, message ${sequence} and the last one of the stream, is not in this log: ` +
      "it is another one, or was restored from a copy that is older; carry it into a new stream",
  );
}

/** Makes what saves the cursor where it has moved since the last time. */
function cursorSaver(target: NatsTarget, pipeline: NatsPipeline): () => Promise<void> {
  let savedSequence = pipeline.stored.sequence;
  return async () => {
    const { stored } = pipeline;
    const count = stored.sequence - savedSequence;
    if (count === 0) return;
    await target.saveCursor(stored);
    savedSequence = stored.sequence;
    process.stdout.write(`${count} events, through ${stored.eventId}\n`);
  };
}

async function saveNowAndThen(save: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await save();
    await delay(CURSOR_INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}

function report({ reason, pauseMs }: Reconnect): void {
  const why = reason instanceof Error ? reason.message : reason.reason;
  reportPause(why, pauseMs);
}

function reportPause(why: string, pauseMs: number): void {
  process.stderr.write(`${why}; connecting again in ${Math.round(pauseMs)} ms\n`);
}

async function runSession(options: Options, stop: AbortSignal): Promise<void> {
  const target = await openTarget(options);
  try {
    await carry(options, target, stop);
  } finally {
    await target.connection.close();
  }
}

/** One connection after the other until the signal. @throws what no further one would mend. */
async function runSessions(options: Options, stop: AbortSignal): Promise<void> {
  for (let failures = 0; !stop.aborted; failures++) {
    const startedMs = performance.now();
    try {
      await runSession(options, stop);
    } catch (error) {
      if (stop.aborted) return;
      if (isFinal(error)) throw error;
      if (performance.now() - startedMs > PAUSE_MS_MAX) failures = 0;
      // Half of it is chance, so that bridges that failed together do not come back together.
      const wholeMs = Math.min(PAUSE_MS * 2 ** failures, PAUSE_MS_MAX);
      const pauseMs = wholeMs * (1 + Math.random()) / 2;
      reportPause(`interrupted: ${error instanceof Error ? error.message : error}`, pauseMs);
      await delay(pauseMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}

/** The first signal ends it in order, a second one at once. */
async function bridge(options: Options): Promise<void> {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  await runSessions(options, stop.signal);
}

await runExample(USAGE, () => bridge(parseOptions(process.argv.slice(2))));

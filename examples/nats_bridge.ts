/**
 * A consumer: carries the log into a stream of NATS JetStream, for as long as it runs.
 *
 *     node examples/nats_bridge.ts --socket demo/data/ground.sock --nats nats://127.0.0.1:4222
 *     deno task example:nats-bridge demo/data/ground.sock
 *     nats stream view ground
 *
 * Message n of the stream is event n of the log, the same bytes, with the event's id as message id;
 * docs/integrations.md describes the subjects. Bridge, service and NATS may be killed at any
 * time: every event is in the stream once and in order, because
 *
 * - the bridge resumes after the event that the stream's last message names, however old, and not
 *   from its own memory;
 * - each message is stored only if the stream ends with the one before it;
 * - NATS recognizes a repeated message id within its duplicate window.
 *
 * The cursor in the key-value bucket is written once all up to it is acknowledged. It is for
 * people, and for when the last message has expired.
 */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type CommittedEvent, EventLogClient, type Reconnect, unixFetch } from "../mod.ts";
import { isInLog } from "./support/is_in_log.ts";
import { BridgeError, isFinal, withEnd } from "./support/nats_failures.ts";
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
  --nats URL       nats://[user:password@]host[:port], several separated by commas (default:
                   NATS_URL, else nats://127.0.0.1:4222)
  --stream NAME    NATS stream, created if missing (default: ground)
  --bucket NAME    key-value bucket for the cursor, created if missing (default: cursors)
  --token TOKEN    bearer token, if the service requires one`;

const CURSOR_INTERVAL_MS = 500;
/** The pause after the first failure; it doubles with each further one. */
const PAUSE_MS = 100;
const PAUSE_MS_MAX = 5000;
/** Valid for streams, buckets and keys. */
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
  if (socket === undefined || operands.length > 0) throw new UsageError("a socket is required");
  const { stream, bucket, token } = values;
  for (const name of [stream, bucket]) {
    if (!NATS_NAME.test(name)) throw new UsageError(`${name} is not a valid NATS name`);
  }
  const servers = values.nats ?? process.env.NATS_URL ?? "nats://127.0.0.1:4222";
  if (!servers.split(",").every((url) => URL.canParse(url))) {
    throw new UsageError("--nats must be a list of URLs");
  }
  // A client that waits for new events also waits for the service.
  const means = { attemptsMax: Infinity, onRetry: report, ...(token !== undefined && { token }) };
  return { client: new EventLogClient(unixFetch(socket), means), stream, bucket, servers };
}

/** Carries events over one connection to NATS until the signal or a failure. */
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
  target.connection.closed().then(
    (error) => fail(error ?? new Error("NATS closed the connection")),
    fail,
  );
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
    `event ${eventId}, message ${sequence} and the last of the stream, is not in this log: ` +
      "the log is a different one, or was restored from an older copy; use a new stream",
  );
}

/** Returns a function that saves the cursor if it has moved since the last call. */
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
  process.stderr.write(`${why}; reconnecting in ${Math.round(pauseMs)} ms\n`);
}

async function runSession(options: Options, stop: AbortSignal): Promise<void> {
  const target = await openTarget(options);
  try {
    await carry(options, target, stop);
  } finally {
    await target.connection.close();
  }
}

/** Reconnects until the signal. @throws errors that a retry cannot fix. */
async function runSessions(options: Options, stop: AbortSignal): Promise<void> {
  for (let failures = 0; !stop.aborted; failures++) {
    const startedMs = performance.now();
    try {
      await runSession(options, stop);
    } catch (error) {
      if (stop.aborted) return;
      if (isFinal(error)) throw withEnd(error);
      if (performance.now() - startedMs > PAUSE_MS_MAX) failures = 0;
      // Half of it is jitter, so that bridges that failed together do not reconnect together.
      const wholeMs = Math.min(PAUSE_MS * 2 ** failures, PAUSE_MS_MAX);
      const pauseMs = wholeMs * (1 + Math.random()) / 2;
      reportPause(`interrupted: ${withEnd(error).message}`, pauseMs);
      await delay(pauseMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}

/** The first signal stops it cleanly, a second one at once. */
async function bridge(options: Options): Promise<void> {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  await runSessions(options, stop.signal);
}

await runExample(USAGE, () => bridge(parseOptions(process.argv.slice(2))));

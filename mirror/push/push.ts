/**
 * `push`: copies a log to a stream until it is stopped. Even if the pusher, the service or NATS is
 * killed at any time, the stream contains every event exactly once, in order.
 */
import { EventLogClient, unixFetch } from "../../mod.ts";
import { operationalError } from "../../src/commands/exit.ts";
import { createCompanion, sayEnd } from "../nats/companion.ts";
import { type MirrorStream, openStream, type StreamOptions } from "../nats/stream.ts";
import { ONCE_IDLE_MS_MAX, runSessions } from "../sessions.ts";
import { checkSocket } from "./check_socket.ts";
import {
  followLog,
  type LogEvent,
  type LogRecord,
  READ_TIMEOUT_MS,
  type ServiceAddress,
} from "./follow.ts";
import { Publisher } from "./publisher.ts";
import { findStreamEnd } from "./stream_end.ts";

const REPORT_INTERVAL_MS = 500;

export interface PushOptions extends StreamOptions, ServiceAddress {
  /** The last event pushed to a stream whose messages have all expired. */
  after: string | undefined;
  /** Whether to return once the stream contains all events that the log had at the start. */
  once: boolean;
  stop: AbortSignal;
  print: (text: string) => void;
  report: (line: string) => void;
}

/** Pushes until `stop` is aborted. @throws an error that a retry cannot fix. */
export async function push(options: PushOptions): Promise<void> {
  await checkSocket(options.socket);
  const session = async (onProgress: () => void) => {
    const stream = await openStream(options, { isCreated: true });
    try {
      await pushOver(stream, options, onProgress);
    } finally {
      await stream.close();
    }
  };
  await runSessions(session, { ...options, idleMsMax: options.once ? ONCE_IDLE_MS_MAX : Infinity });
}

/** Runs one session. It ends on `stop`, on a failure or, with `once`, after catching up. */
async function pushOver(
  stream: MirrorStream,
  options: PushOptions,
  onProgress: () => void,
): Promise<void> {
  const { socket, token, after, stop, readTimeoutMs = READ_TIMEOUT_MS } = options;
  // Make a single attempt, since `runSessions` retries the session if the service is down.
  const limits = { attemptsMax: 1, readTimeoutMs, ...(token && { token }) };
  const client = new EventLogClient(unixFetch(socket), limits);
  const start = await findStreamEnd(stream, { client, after, stop });
  await createCompanion(stream);
  const failed = new AbortController();
  const signal = AbortSignal.any([stop, failed.signal]);
  const fail = (error: unknown) => failed.abort(error);
  stream.connection.closed().then(
    (error) => fail(error ?? new Error("NATS closed the connection")),
    fail,
  );
  const publisher = new Publisher(stream, start, failed);
  options.report(
    `the server accepts messages of ${publisher.limitBytes} bytes; larger events are split`,
  );
  const reporting = reportProgress(stream, publisher, options.print, onProgress);
  try {
    const records = followLog(options, start.resumeAfter, signal);
    await publishRecords(records, publisher, options, reporting.read);
    await publisher.drain();
  } catch (error) {
    failed.signal.throwIfAborted();
    await publisher.drain();
    // If `stop` is aborted, the follow throws the abort reason; that is not a failure.
    if (!stop.aborted) throw error;
  } finally {
    reporting.end();
  }
}

async function publishRecords(
  records: AsyncIterable<LogRecord>,
  publisher: Publisher,
  { once, stop }: PushOptions,
  onRead: (eventId: string | null | undefined) => void,
): Promise<void> {
  /** Last event in the previous record, if its batch may continue in the next one. */
  let held: LogEvent | null = null;
  for await (const record of records) {
    if (record.type === "end") throw ended(record);
    if (record.type === "caught_up") {
      if (once) return;
      continue;
    }
    onRead(record.snapshot_through_event_id);
    onRead(record.events.at(-1)?.eventId);
    const events: LogEvent[] = held === null ? record.events : [held, ...record.events];
    const isWhole = events.at(-1)?.eventId === record.snapshot_through_event_id;
    held = isWhole ? null : events.pop() ?? null;
    for (let at = 0; at < events.length && !stop.aborted; at++) {
      const event = events[at]!;
      const following = events[at + 1];
      const next = following ?? held;
      const isLast = following === undefined || publisher.isTooLarge(following);
      while (!publisher.hasRoom(event)) await publisher.progress();
      const parts = publisher.isTooLarge(event) ? await publisher.storeParts(event) : undefined;
      publisher.publish(event, event.batch !== next?.batch, isLast, parts);
    }
  }
}

/** Reasons to end a follow that require an operator. */
const FINAL_REASONS = ["writer_poisoned", "replay_failed"];

function ended({ reason, detail }: Extract<LogRecord, { type: "end" }>): Error {
  const text = `${reason}: ${detail}`;
  return FINAL_REASONS.includes(reason) ? operationalError(text) : new Error(text);
}

/** Reports stored events, and tells restores how far the log was read: periodically, and last. */
function reportProgress(
  stream: MirrorStream,
  publisher: Publisher,
  print: PushOptions["print"],
  onProgress: () => void,
) {
  let printed = 0;
  let [read, said] = ["", ""];
  const tell = () => {
    const { events, eventId } = publisher.stored;
    if (events > printed) print(`${events - printed} events, through ${eventId}\n`);
    if (events > printed) onProgress();
    printed = events;
    if (read !== said) sayEnd(stream, said = read);
  };
  const timer = setInterval(tell, REPORT_INTERVAL_MS);
  return {
    read(eventId: string | null | undefined) {
      if (eventId && eventId > read) read = eventId;
      if (said === "") tell();
    },
    end() {
      clearInterval(timer);
      tell();
    },
  };
}

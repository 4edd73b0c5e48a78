/**
 * `append` appends events from standard input, one JSON object a line. Lines are sent as they are;
 * they are parsed only to find the first that is no object.
 */
import { Buffer, isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import { fstatSync } from "node:fs";
import process from "node:process";
import { addAbortSignal } from "node:stream";
import { BatchQueue, type QueuedEvent } from "../client/batch_queue.ts";
import { ConnectionError, EventLogError, ProtocolError } from "../client/errors.ts";
import { WRITER_BYTES_MAX, WRITER_EVENTS_MAX } from "../client/event_writer.ts";
import { readLines } from "../client/response_body.ts";
import type { EventFault } from "../event/api_error.ts";
import { JsonError, parseJson } from "../event/json/strict_json.ts";
import { batchIdFault, nameFault, sourceFault } from "../event/names.ts";
import { INGEST_BODY_BYTES_MAX } from "../limits.ts";
import type { Options } from "./arguments.ts";
import type { Config } from "./config.ts";
import { CommandError, operationalError, usageError } from "./exit.ts";
import { print, runAsClient } from "./service_client.ts";
import type { Terminal } from "./terminal.ts";

const STDIN = 0;
/** A batch is sent this long after its first line. */
const DELAY_MS = 200;
/** A line must fit in a request with the ids of its batch. */
const LINE_BYTES_MAX = INGEST_BODY_BYTES_MAX - 4096;
const QUEUE_BYTES_MAX = 3 * WRITER_BYTES_MAX;
/** Faults of a batch that are reported. */
const FAULTS_SHOWN_MAX = 10;

interface Line extends QueuedEvent {
  number: number;
}

export async function append(config: Config, options: Options, terminal: Terminal): Promise<void> {
  const { source = "", stream, "batch-id": batchId } = options;
  check("source", sourceFault(source));
  if (stream !== undefined) check("stream", nameFault(stream));
  // The longest id that a batch can get.
  if (batchId !== undefined) check("batch-id", batchIdFault(`${batchId}/${2 ** 53}`));
  if (fstatSync(STDIN).isDirectory()) {
    throw usageError("standard input is a directory; give it a file or a pipe");
  }
  const prefix = batchId ?? randomUUID();
  const limits = {
    eventsMax: WRITER_EVENTS_MAX,
    bytesMax: WRITER_BYTES_MAX,
    delayMs: batchId === undefined ? DELAY_MS : Infinity,
    bufferBytesMax: QUEUE_BYTES_MAX,
  };
  await runAsClient(config, terminal, async (client) => {
    let batches = 0;
    let committed = 0;
    const failed = new AbortController();
    const queue = new BatchQueue<Line>(async (lines) => {
      const id = `${prefix}/${++batches}`;
      const events = lines.map(({ text }) => text);
      try {
        const receipt = await client.appendEncoded({ source, batchId: id, events });
        committed = lines.at(-1)!.number;
        await print(`${JSON.stringify(receipt)}\n`);
      } catch (error) {
        // Reported now, even if no more input comes.
        failed.abort();
        throw failure(error, lines, committed);
      }
    }, limits);
    try {
      await readInto(queue, stream, AbortSignal.any([terminal.stop, failed.signal]));
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      // What precedes the batch of this line is still sent.
      await queue.drop();
      throw operationalError(`${error.message}; ${extent(committed)}`);
    }
    await queue.flush();
  });
}

function check(option: string, fault: string | null): void {
  if (fault !== null) throw usageError(`--${option} ${fault}`);
}

/** Why a line cannot be sent. */
class LineError extends Error {}

/** Reads standard input to its end, or until the signal. A last line needs no LF. */
async function readInto(
  queue: BatchQueue<Line>,
  stream: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  let number = 1;
  try {
    for await (const bytes of readLines(inputUntil(signal), LINE_BYTES_MAX, "keep rest")) {
      if (signal.aborted) return;
      if (queue.isFull) await queue.ready();
      const text = eventOf(bytes, stream);
      queue.add({ text, sizeBytes: Buffer.byteLength(text), number });
      number++;
    }
  } catch (error) {
    const isOfLine = [LineError, JsonError, ProtocolError].some((type) => error instanceof type);
    throw isOfLine ? new LineError(`line ${number}: ${(error as Error).message}`) : error;
  }
}

async function* inputUntil(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* addAbortSignal(signal, process.stdin);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Returns the event in a line. @throws {LineError | JsonError} if it is no JSON object. */
function eventOf(bytes: Uint8Array, stream: string | undefined): string {
  if (!isUtf8(bytes)) throw new LineError("is not valid UTF-8");
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch {
    if (text.trim() === "") throw new LineError("is empty");
    // Says what the service would say.
    event = parseJson(bytes);
  }
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw new LineError("event must be an object");
  }
  if (stream === undefined || Object.hasOwn(event, "stream")) return text;
  const separator = Object.keys(event).length === 0 ? "" : ",";
  return text.replace("{", () => `{"stream":${JSON.stringify(stream)}${separator}`);
}

/** Says which lines failed, for what reason, and which are committed. */
function failure(error: unknown, lines: Line[], committed: number): unknown {
  const [first, last] = [lines[0]!.number, lines.at(-1)!.number];
  if (error instanceof ConnectionError) {
    const doubt = `${range(first, last)} may be committed, too`;
    return operationalError(`${error.message}; ${extent(committed)}, ${doubt}`, error);
  }
  if (!(error instanceof EventLogError)) return error;
  const { errors } = Object(error.body) as { errors?: EventFault[] };
  const reasons = Array.isArray(errors) && errors.length > 0
    ? errors.slice(0, FAULTS_SHOWN_MAX).map(({ index, message }) =>
      `line ${lines[index]?.number}: ${message}`
    )
    : [error.message];
  const written = `nothing of ${range(first, last)} was written; ${extent(committed)}`;
  return new CommandError(1, [...reasons, written].join("\n"), { cause: error });
}

function range(first: number, last: number): string {
  return first === last ? `line ${first}` : `lines ${first} to ${last}`;
}

function extent(committed: number): string {
  if (committed === 0) return "no line is committed";
  return `${range(1, committed)} ${committed === 1 ? "is" : "are"} committed`;
}

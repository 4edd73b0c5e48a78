/**
 * A consumer: delivers each event to an HTTP endpoint, at least once and in order.
 *
 *     node examples/webhook.ts --socket demo/data/ground.sock --url https://example.com/hook \
 *       --secret-file secret --cursor position --given-up given-up.ndjson --stream orders
 *     deno task example:webhook --socket demo/data/ground.sock ...
 *
 * A webhook is one event, signed by the Standard Webhooks specification. Its `webhook-id` is the
 * event's id, by which a receiver recognizes a repetition. The position is written after the
 * endpoint has accepted the event, so a crash in between repeats that event but never skips any.
 * Later events wait while an event is retried. After the last attempt, the event is appended to
 * the file of `--given-up`, and the next one is delivered.
 */
import type { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type CommittedEvent, EventLogClient, type FollowOptions, unixFetch } from "../mod.ts";
import { checkedPath } from "./support/checked_path.ts";
import { readCursor, writeCursor } from "./support/cursor_file.ts";
import { refuseRest, runExample, UsageError } from "./support/run_example.ts";
import { parseSince } from "./support/since.ts";
import { parseWait, reportRetry, WAIT_OPTION, WAIT_USAGE } from "./support/socket_wait.ts";
import { readToken } from "./support/token_file.ts";
import { postWebhook } from "./support/webhook_endpoint.ts";
import { parseSecrets, signatureHeaders } from "./support/webhook_signature.ts";
import { withoutUndefined } from "./support/without_undefined.ts";

const USAGE = `usage: webhook --socket SOCKET --url URL --cursor FILE --given-up FILE [OPTION...]

  --socket SOCKET     socket of the service
  --url URL           endpoint; without it, the environment variable WEBHOOK_URL
  --secret-file FILE  file with the signing secret, whsec_...; without it, WEBHOOK_SECRET
  --cursor FILE       file that stores the position to resume from
  --given-up FILE     file for the events that the endpoint did not accept, one a line
  --since TIME        without a position, start with the events since TIME: 90m, 2d (ago), 14:00,
                      2026-01-31T14:00:00Z (default: the beginning of the log)
  --once              stop at the end of the log instead of waiting for more
  --attempts N        attempts for an event (default: 15, about half an hour)
  --pause SECONDS     pause after the first failure, which doubles up to 300 (default: 1)
  --timeout SECONDS   limit for an attempt (default: 20)
  ${WAIT_USAGE}
  --token-file FILE   file with the bearer token, if the service requires one

filters: --source NAME, --stream NAME, --record-key KEY, --kind KIND`;

const PAUSE_MS_MAX = 300_000;

interface Options {
  client: EventLogClient;
  filter: FollowOptions;
  url: string;
  keys: Buffer[];
  cursorPath: string;
  givenUpPath: string;
  once: boolean;
  attemptsMax: number;
  pauseMs: number;
  timeoutMs: number;
}

function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      socket: { type: "string" },
      url: { type: "string" },
      "secret-file": { type: "string" },
      cursor: { type: "string" },
      "given-up": { type: "string" },
      since: { type: "string" },
      once: { type: "boolean", default: false },
      attempts: { type: "string", default: "15" },
      pause: { type: "string", default: "1" },
      timeout: { type: "string", default: "20" },
      wait: WAIT_OPTION,
      "token-file": { type: "string" },
      source: { type: "string" },
      stream: { type: "string" },
      "record-key": { type: "string" },
      kind: { type: "string" },
    },
  });
  refuseRest(positionals);
  const { socket, cursor: cursorPath, "given-up": givenUpPath, once } = values;
  if (socket === undefined || cursorPath === undefined || givenUpPath === undefined) {
    throw new UsageError("--socket, --cursor and --given-up are required");
  }
  const since = values.since === undefined ? undefined : parseSince(values.since, Date.now());
  if (since === null) throw new UsageError(`--since must be a time, got ${values.since}`);
  const attemptsMax = parseNumber("--attempts", values.attempts, 1_000_000);
  if (!Number.isInteger(attemptsMax)) throw new UsageError("--attempts must be an integer");
  const token = readToken(values["token-file"]);
  const { source, stream, "record-key": recordKey, kind } = values;
  return {
    client: new EventLogClient(
      unixFetch(socket),
      withoutUndefined({
        token,
        attemptsMax: once ? undefined : Infinity,
        socketWaitMs: parseWait(values.wait),
        onRetry: reportRetry,
      }),
    ),
    filter: withoutUndefined({ since, source, stream, recordKey, kind }),
    url: parseUrl(values.url ?? process.env.WEBHOOK_URL),
    keys: readSecrets(values["secret-file"]),
    cursorPath: checkedPath(cursorPath),
    givenUpPath: checkedPath(givenUpPath),
    once,
    attemptsMax,
    pauseMs: parseNumber("--pause", values.pause, 3600) * 1000,
    timeoutMs: parseNumber("--timeout", values.timeout, 3600) * 1000,
  };
}

function parseNumber(name: string, text: string, max: number): number {
  const number = Number(text);
  if (number > 0 && number <= max) return number;
  throw new UsageError(`${name} must be a number above 0 and at most ${max}, got ${text}`);
}

function parseUrl(text = ""): string {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.username !== "") {
    throw new UsageError("--url or WEBHOOK_URL must be an http or https URL without a user");
  }
  return url.href;
}

/** Other users can see a program's arguments, so the secret is never one. */
function readSecrets(path: string | undefined): Buffer[] {
  const text = path === undefined ? process.env.WEBHOOK_SECRET : readFileSync(path, "utf8");
  if (text === undefined) throw new UsageError("--secret-file or WEBHOOK_SECRET is required");
  return parseSecrets(text);
}

/**
 * Delivers an event, or gives it up after the last attempt.
 * @throws {Error} if the endpoint is gone. @throws the reason of `stop` if it is aborted.
 */
async function deliver(event: CommittedEvent, options: Options, stop: AbortSignal): Promise<void> {
  const { url, keys, attemptsMax, timeoutMs } = options;
  const { event_id: id, stream, kind, occurred_at, observed_at } = event;
  const type = `${stream}.${kind}`;
  const body = JSON.stringify({ type, timestamp: occurred_at ?? observed_at, data: event });
  for (let attempt = 1;; attempt++) {
    const headers = signatureHeaders(keys, id, Math.floor(Date.now() / 1000), body);
    const outcome = await postWebhook(url, headers, body, { timeoutMs, stop });
    if (outcome.type === "delivered") return void process.stdout.write(`${id} delivered\n`);
    if (outcome.type === "gone") {
      throw new Error(`the endpoint is gone (status 410); ${id} and later events were not sent`);
    }
    const { reason, retryAfterMs } = outcome;
    if (attempt === attemptsMax) {
      await giveUp(event, `${reason} (attempt ${attempt})`, options.givenUpPath);
      return void process.stdout.write(`${id} given up\n`);
    }
    const backoffMs = Math.min(options.pauseMs * 2 ** (attempt - 1), PAUSE_MS_MAX);
    // Half of the pause is random, so that many senders don't return all at once.
    const pauseMs = Math.max(backoffMs * (0.5 + Math.random() / 2), retryAfterMs);
    process.stderr.write(`${id}: ${reason}; retrying in ${Math.round(pauseMs)} ms\n`);
    await delay(pauseMs, undefined, { signal: stop });
  }
}

/** Appends an event to the file of those given up. It is durable before the position moves on. */
async function giveUp(event: CommittedEvent, reason: string, path: string): Promise<void> {
  const file = await open(path, "a", 0o600);
  try {
    await file.write(`${JSON.stringify({ reason, given_up_at: new Date(), event })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function deliverAll(options: Options, stop: AbortSignal): Promise<void> {
  const { client, filter, cursorPath, once } = options;
  const items = client.follow({
    ...filter,
    after: await readCursor(cursorPath),
    // Also moves past events that the filters exclude.
    onPosition: (position) => writeCursor(cursorPath, position),
    onReconnect: ({ reason }) => process.stderr.write(`${describeEnd(reason)}; reconnecting\n`),
    signal: stop,
  });
  for await (const item of items) {
    if (item.type === "event") {
      await deliver(item.event, options, stop);
      await writeCursor(cursorPath, item.event.event_id);
    }
    if (item.type === "end") throw new Error(describeEnd(item));
    if (item.type === "caught_up" && once) {
      if (item.nextAfter !== null) await writeCursor(cursorPath, item.nextAfter);
      return;
    }
  }
}

function describeEnd(reason: Error | { reason: string; detail?: string | undefined }): string {
  return reason instanceof Error ? reason.message : `${reason.reason}: ${reason.detail ?? ""}`;
}

await runExample(USAGE, async () => {
  const options = parseOptions(process.argv.slice(2));
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());
  try {
    await deliverAll(options, stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  }
});

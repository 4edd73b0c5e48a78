/** Requests to every route that leave a log unchanged, and the replies that a client receives. */
import { Buffer } from "node:buffer";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { HttpHandler } from "../../../src/http/message.ts";
import { type Random, randomInteger, randomItem } from "../../../tools/support/random.ts";
import { stubRequest } from "../../support/stub_request.ts";
import { submittedEvent } from "../../support/submitted.ts";
import type { AlteredLog } from "./altered_log.ts";

const PAGE_EVENTS = 400;
/** Filters and positions are taken from every nth event. */
const CHOSEN_STEP = 17;

export interface AlteredRequest {
  target: string;
  /** The body of a POST. */
  body?: string;
  /** The file that the request reads, if it reads just one. */
  file?: string;
}

/** A reply as the client receives it. */
export interface Reply {
  status: number;
  text: string;
  /** Whether the connection broke before the end of the body. */
  isBroken: boolean;
}

export function isFollow({ target }: AlteredRequest): boolean {
  return target.includes("follow=true");
}

/** Sends a request. Reads a follow until it has caught up or ends. */
export async function ask(handler: HttpHandler, request: AlteredRequest): Promise<Reply> {
  const { target, body } = request;
  const posted = body !== undefined &&
    { method: "POST", bodyBytes: Buffer.byteLength(body), pieces: [body] };
  const response = await handler(stubRequest({ target, ...posted }));
  const { status } = response;
  let text = "";
  let isBroken = false;
  try {
    const isWhole = typeof response.body === "string" || response.body instanceof Uint8Array;
    const pieces = isWhole ? [Buffer.from(response.body as string)] : response.body ?? [];
    for await (const bytes of pieces as AsyncIterable<Uint8Array>) {
      const piece = Buffer.from(bytes).toString("latin1");
      text += piece;
      if (isFollow(request) && piece.includes('{"type":"caught_up"')) break;
    }
  } catch {
    isBroken = true;
  }
  return { status, text, isBroken };
}

/** A file in a log, and the events in it. */
export interface FileEvents {
  path: string;
  events: CommittedEvent[];
}

function replayTarget(parameters: Record<string, string | undefined>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return `/v1/events?${new URLSearchParams(given as [string, string][])}`;
}

/**
 * Requests to every route, in random order. A replay and a follow each return all events.
 * @param isFilter whether to look up every key that a damaged filter could hide.
 */
export function requestsOf(
  random: Random,
  { batches, retired }: AlteredLog,
  files: readonly FileEvents[],
  isFilter: boolean,
): AlteredRequest[] {
  const events = files.flatMap((file) => file.events);
  /** One replay for each file, which reads only that file. */
  const requests = files.map(({ path, events }, place): AlteredRequest => {
    const after = files[place - 1]?.events.at(-1)?.event_id;
    return { target: replayTarget({ after, limit: `${events.length}` }), file: path };
  });
  const start = PAGE_EVENTS * randomInteger(random, 0, Math.floor(events.length / PAGE_EVENTS));
  const before = events[start - 1]?.event_id;
  requests.push({ target: replayTarget({ after: before, limit: `${PAGE_EVENTS}` }) });
  requests.push({ target: replayTarget({ follow: "true", limit: "300" }) });
  // Choose only a few events, so that all correct replies fit in memory.
  const chosen = events.filter((_, place) => place % CHOSEN_STEP === 0);
  const some = () => randomItem(random, chosen);
  for (let n = 0; n < 3; n++) {
    requests.push({ target: replayTarget({ record_key: some().record_key }) });
    const after = some().event_id;
    requests.push({ target: replayTarget({ after, limit: `${randomItem(random, [1, 7, 40])}` }) });
    requests.push({ target: `/v1/streams?limit=2&through=${some().event_id}` });
  }
  const { source, stream, kind } = some();
  requests.push({ target: replayTarget({ source, stream }) }, { target: replayTarget({ kind }) });
  requests.push({ target: replayTarget({ record_key: "absent" }) });
  const through = events.at(-1)!.event_id;
  const after = `${source}/${stream}`;
  requests.push({ target: "/v1/streams" }, { target: `/v1/streams?source=${source}` });
  requests.push({ target: `/v1/streams?${new URLSearchParams({ after, through, limit: "3" })}` });
  const post = (body: unknown, target = "/v1/events") =>
    requests.push({ target, body: JSON.stringify(body) });
  for (let n = 0; n < 6; n++) post(randomItem(random, batches));
  if (isFilter) {
    for (const name of ["record_key", "stream"] as const) {
      for (const value of new Set(events.map((event) => event[name]))) {
        requests.push({ target: replayTarget({ [name]: value, limit: "300" }) });
      }
    }
    const sealed = new Set(
      files.filter(({ path }) => path.startsWith("segments/"))
        .flatMap((file) => file.events.map(({ batch_id }) => batch_id)),
    );
    for (const batch of batches) if (sealed.has(batch.batch_id)) post(batch);
  }
  const changed = randomItem(random, batches);
  post({ ...changed, events: [...changed.events, submittedEvent()] });
  const ofStream = randomItem(random, events.filter(({ source }) => source === "shop"));
  post({
    source: ofStream.source,
    batch_id: "refused",
    events: [submittedEvent(ofStream.stream)],
    stream_precondition: { stream: ofStream.stream, expected_frontier: null },
  });
  for (const name of retired) {
    post({ source: name }, "/v1/sources/retire");
    post({ ...batches[0], source: name, batch_id: "too late" });
  }
  post({ source: "unknown" }, "/v1/sources/retire");
  return requests.map((request) => ({ request, rank: random() }))
    .sort((a, b) => a.rank - b.rank).map(({ request }) => request);
}

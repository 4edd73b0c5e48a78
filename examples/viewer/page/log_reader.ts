/** Reads the log through the viewer's server: replays, lists streams and follows. */
import type { CommittedEvent, StreamSummary } from "../../../event.ts";
import { firstIdAt, idBefore } from "../../../src/event/event_id.ts";

export interface Page {
  events: CommittedEvent[];
  next_after: string | null;
  snapshot_through_event_id: string | null;
}

export interface StreamsPage {
  streams: StreamSummary[];
  next_after: string | null;
  snapshot_through_event_id: string | null;
}

type FollowLine =
  | (Page & { type: "events" })
  | { type: "caught_up"; next_after: string | null; snapshot_through_event_id: string | null }
  | { type: "end"; reason: string };

/** Selects the events that the page shows, by the parameters in its address. */
export interface Filter {
  source: string | null;
  stream: string | null;
}

export type Query = Record<string, string | number | null>;

const FIRST_PAUSE_MS = 250;
const PAUSE_MS_MAX = 5000;

export async function open(path: string, query: Query): Promise<Response> {
  const members = Object.entries(query).filter(([, value]) => value !== null);
  const search = new URLSearchParams(members.map(([name, value]) => [name, String(value)]));
  const response = await fetch(`${path}?${search}`);
  if (response.ok) return response;
  const { error, message } = await response.json();
  throw new Error(`${error}: ${message}`);
}

export async function readPage(query: Query): Promise<Page> {
  return await (await open("/v1/events", query)).json();
}

export async function readStreams(query: Query): Promise<StreamsPage> {
  return await (await open("/v1/streams", query)).json();
}

/** Reads the matching events committed since a time to the end of the log, page by page. */
export async function* readSince(
  unixMs: number,
  filter: Filter,
): AsyncGenerator<CommittedEvent[]> {
  for (let position = firstIdAt(unixMs);;) {
    const page = await readPage({ ...filter, after: position });
    yield page.events;
    const { next_after, snapshot_through_event_id } = page;
    if (next_after === null || next_after >= snapshot_through_event_id!) return;
    position = next_after;
  }
}

async function* linesOf(response: Response): AsyncGenerator<FollowLine> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop()!;
    for (const line of lines) yield JSON.parse(line);
  }
}

export interface Follower {
  /** Processes events. The next events are read once the promise resolves. */
  onEvents(events: CommittedEvent[]): Promise<void>;
  onConnected(): void;
  onLost(reason: string, pauseMs: number): void;
  /** Called if the log lost the event at the position, in a restore from an older backup. */
  onRestored(): void;
}

async function isInLog(eventId: string): Promise<boolean> {
  const { events } = await readPage({ after: idBefore(eventId) ?? null, limit: 1 });
  return events[0]?.event_id === eventId;
}

/** Follows the log from a position forever, and resumes whenever the connection is lost. */
export async function follow(
  after: string | null,
  filter: Filter,
  follower: Follower,
): Promise<never> {
  let position = after;
  for (let pauseMs = FIRST_PAUSE_MS;; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    let reason = "the connection was lost";
    try {
      const response = await open("/v1/events", { ...filter, follow: "true", after: position });
      if (position !== null && !await isInLog(position)) follower.onRestored();
      for await (const line of linesOf(response)) {
        if (line.type === "end") {
          reason = `the service ended the response: ${line.reason}`;
          continue;
        }
        follower.onConnected();
        pauseMs = FIRST_PAUSE_MS;
        if (line.type === "events") await follower.onEvents(line.events);
        position = line.next_after;
      }
    } catch (error) {
      reason = (error as Error).message;
    }
    follower.onLost(reason, pauseMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Histories against a service behind the HTTP API, with one connection a call. */
import type { StreamSummary } from "../../src/event/types.ts";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { DisturbedService } from "./disturbed_service.ts";
import type { HistoryTarget } from "./history_target.ts";
import { request } from "./http_client.ts";
import type { Outcome } from "./outcome.ts";

/** Small pages, so that there are some. */
const EVENTS_LIMIT = 7;
const STREAMS_LIMIT = 3;

/** @param service what the server at `socketPath` answers from. */
export function httpTarget(socketPath: string, service: DisturbedService): HistoryTarget {
  return {
    append: (batch) => post(socketPath, "/v1/events", batch),
    retire: (source) => post(socketPath, "/v1/sources/retire", { v: 1, source }),
    events: () => readEvents(socketPath),
    streams: () => readStreams(socketPath),
    restart: () => service.restart(),
    kill: () => service.kill(),
    seal: () => service.seal(),
    failDisk: (how) => service.failDisk(how),
  };
}

/** The answer; null for the error that a killed service leaves the server with. */
async function post(socketPath: string, path: string, body: unknown): Promise<Outcome | null> {
  const reply = await request(socketPath, { path, body });
  const { message: _, ...answer } = reply.json();
  return answer.error === "internal_error" ? null : { status: reply.status, body: answer };
}

async function readEvents(socketPath: string): Promise<CommittedEvent[]> {
  const events: CommittedEvent[] = [];
  for (let after = "";;) {
    const path = `/v1/events?limit=${EVENTS_LIMIT}${after}`;
    const page = (await request(socketPath, { path })).json();
    events.push(...page.events);
    if (page.next_after === page.snapshot_through_event_id) return events;
    after = `&after=${page.next_after}`;
  }
}

async function readStreams(socketPath: string): Promise<StreamSummary[]> {
  const streams: StreamSummary[] = [];
  for (let cursor = "";;) {
    const path = `/v1/streams?limit=${STREAMS_LIMIT}${cursor}`;
    const page = (await request(socketPath, { path })).json();
    streams.push(...page.streams);
    if (page.next_after === null) return streams;
    const after = encodeURIComponent(page.next_after);
    cursor = `&after=${after}&through=${page.snapshot_through_event_id}`;
  }
}

/** The submitted events in the peers' formats, with the same contents for all. */
import type { Buffer } from "node:buffer";
import { BENCH_SOURCE } from "../support/requests.ts";

/** A submitted event. */
export interface BenchEvent {
  stream: string;
  record_key: string;
  kind: string;
  occurred_at: string;
  payload: Record<string, unknown>;
}

/** Returns the events in a request to the service. */
export function eventsOf(request: Buffer): BenchEvent[] {
  const body = request.subarray(request.indexOf("\r\n\r\n") + 4).toString("utf8");
  return (JSON.parse(body) as { events: BenchEvent[] }).events;
}

/** Formats an event as a JSON string, for a peer that stores it opaquely. */
export function eventText(event: BenchEvent): string {
  return JSON.stringify({ source: BENCH_SOURCE, ...event });
}

/** Calls to the HTTP API, and assertions on its responses. */
import assert from "node:assert/strict";
import { ERROR_STATUS, type ErrorCode } from "../../../src/event/api_error.ts";
import type { CommittedEvent, Receipt, RetirementReceipt } from "../../../src/event/types.ts";
import type { StreamsPage } from "../../../src/service/streams.ts";
import type { EventsRecord } from "../../support/follow_records.ts";
import { type HttpReply, request } from "../../support/http_client.ts";
import type { SubmittedBatch, SubmittedEvent } from "../../support/submitted.ts";

/** The smallest well-formed event id, which no log contains. */
export const NO_EVENT_ID = "00000000-0000-7000-8000-000000000000";

export type ReplayPage = Omit<EventsRecord, "type" | "phase">;

/** A valid event, with `members` overridden or added. */
export function event(members: object = {}): SubmittedEvent {
  return { stream: "orders", record_key: "1", kind: "upserted", payload: null, ...members };
}

/** A valid batch of one event, with `members` overridden or added. */
export function batchWith(members: object): SubmittedBatch {
  return { source: "shop", batch_id: "b", events: [event()], ...members };
}

export function ingest(socketPath: string, body: unknown): Promise<HttpReply> {
  return request(socketPath, { body });
}

/** Ingests a batch, which must be accepted. */
export async function commit(socketPath: string, body: unknown): Promise<Receipt> {
  const reply = await ingest(socketPath, body);
  assert.equal(reply.status, 200, reply.text());
  const receipt: Receipt = reply.json();
  assert.equal(receipt.status, "committed");
  return receipt;
}

export function postRetirement(socketPath: string, body: unknown): Promise<HttpReply> {
  return request(socketPath, { path: "/v1/sources/retire", body });
}

/** Retires a source, which must have events. */
export async function retire(socketPath: string, source: string): Promise<RetirementReceipt> {
  const reply = await postRetirement(socketPath, { source });
  assert.equal(reply.status, 200, reply.text());
  return reply.json();
}

/** A page of `GET /v1/events`. */
export async function replayPage(socketPath: string, query = ""): Promise<ReplayPage> {
  const reply = await request(socketPath, { path: `/v1/events?${query}` });
  assert.equal(reply.status, 200, reply.text());
  return reply.json();
}

/** All events in the log. */
export async function allEvents(socketPath: string): Promise<CommittedEvent[]> {
  return (await replayPage(socketPath, "limit=100000")).events;
}

/** A page of `GET /v1/streams`. */
export async function streamsPage(socketPath: string, query = ""): Promise<StreamsPage> {
  const reply = await request(socketPath, { path: `/v1/streams?${query}` });
  assert.equal(reply.status, 200, reply.text());
  return reply.json();
}

/**
 * Asserts that a reply is an error with this code, the code's status, and exactly the members in
 * `context` besides code and message. @returns the message.
 */
export function assertError(reply: HttpReply, code: ErrorCode, context: object = {}): string {
  assert.equal(reply.headers["content-type"], "application/json");
  const { message, ...document } = reply.json();
  assert.deepEqual(document, { error: code, ...context });
  assert.equal(reply.status, ERROR_STATUS[code]);
  assert.ok(typeof message === "string" && message.length > 0);
  return message;
}

/** The cases in a table of invalid requests. The table is grouped by error code, then by rule. */
export function casesOf<Request>(
  table: { [code in ErrorCode]?: Record<string, Request> },
): Array<[code: ErrorCode, rule: string, request: Request]> {
  const cases: ReturnType<typeof casesOf<Request>> = [];
  for (const [code, requests] of Object.entries(table)) {
    for (const [rule, request] of Object.entries(requests)) {
      cases.push([code as ErrorCode, rule, request]);
    }
  }
  return cases;
}

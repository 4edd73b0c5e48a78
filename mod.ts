/**
 * Client library for connectors and consumers of the durable event log service.
 *
 * {@linkcode EventLogClient} calls the service through {@linkcode unixFetch}.
 * {@linkcode verifyEvent} and {@linkcode canonicalize} work without a service; `event.ts` exports
 * them for browsers.
 *
 * @example Append a batch
 * ```ts
 * import { EventLogClient, unixFetch } from "@ground/service";
 *
 * const client = new EventLogClient(unixFetch("demo/data/ground.sock"));
 * await client.append({
 *   source: "crm",
 *   batchId: "2026-01-31/1",
 *   events: [{ stream: "contacts", record_key: "42", kind: "upserted", payload: { name: "Ada" } }],
 * });
 * ```
 *
 * @example Read and verify history
 * ```ts
 * import { EventLogClient, unixFetch, verifyEvent } from "@ground/service";
 *
 * const client = new EventLogClient(unixFetch("demo/data/ground.sock"));
 * for await (const event of client.replay({ source: "crm" })) {
 *   const { contentHash, eventHash } = await verifyEvent(event);
 *   if (!contentHash || !eventHash) throw new Error(`event ${event.event_id} was altered`);
 * }
 * ```
 *
 * @module
 */
export * from "./event.ts";
export {
  AlteredEventError,
  ConnectionError,
  EventLogError,
  PositionError,
  ProtocolError,
} from "./src/client/errors.ts";
export { type Batch, type CallOptions, EventLogClient } from "./src/client/event_log_client.ts";
export { EventWriter, type WriteOptions, type WriterOptions } from "./src/client/event_writer.ts";
export type {
  FollowEvent,
  FollowItem,
  FollowOptions,
  Interruption,
  Reconnect,
} from "./src/client/follow.ts";
export type { StartOptions } from "./src/client/position.ts";
export type {
  ReplayFilter,
  ReplayOptions,
  StreamsOptions,
  StreamsSnapshot,
} from "./src/client/replay.ts";
export type { EventLogClientOptions } from "./src/client/transport.ts";
export type { Retry, Timing } from "./src/client/retry.ts";
export { type Fetch, unixFetch } from "./src/client/unix_fetch.ts";
export type {
  FollowCaughtUp,
  FollowEnd,
  FollowEvents,
  FollowRecord,
  ReplayPage,
} from "./src/client/wire.ts";

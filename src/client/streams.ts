/** Lists streams. All pages count events up to the same event, so they form one snapshot. */
import type { StreamSummary } from "../event/types.ts";
import { STREAMS_LIMIT_MAX } from "../limits.ts";
import { ProtocolError } from "./errors.ts";
import { refuseUnknown } from "./options.ts";
import type { Transport } from "./transport.ts";
import { toStreamsPage } from "./wire.ts";

/** Options for `streams()`. */
export interface StreamsOptions {
  /** Restricts the listing to one source. */
  source?: string;
  /** Cancels the call, which then throws the signal's abort reason. */
  signal?: AbortSignal;
}

/** All streams in a snapshot. */
export interface StreamsSnapshot {
  /** Streams in byte order of source, then stream. */
  streams: StreamSummary[];
  /** The last counted event; null for an empty log. */
  snapshotThroughEventId: string | null;
}

export async function listStreams(
  transport: Transport,
  options: StreamsOptions,
): Promise<StreamsSnapshot> {
  refuseUnknown("streams()", options, "source signal");
  const { source, signal } = options;
  const streams: StreamSummary[] = [];
  let after: string | undefined;
  let through: string | undefined;
  for (;;) {
    const query = { source, after, through, limit: STREAMS_LIMIT_MAX };
    const request = { method: "GET", path: "/v1/streams", query } as const;
    const page = toStreamsPage(await transport.request(request, signal));
    for (const row of page.streams) streams.push(row);
    through ??= page.snapshotThroughEventId ?? undefined;
    if (page.nextAfter === null) return { streams, snapshotThroughEventId: through ?? null };
    if (page.nextAfter === after) {
      throw new ProtocolError("next_after of a page of streams does not advance");
    }
    after = page.nextAfter;
  }
}

/** A server that deterministically returns every kind of response. */
import { ApiError } from "../../../src/event/api_error.ts";
import { INGEST_BODY_BYTES_MAX } from "../../../src/limits.ts";
import { Admission } from "../../../src/service/admission.ts";
import type { EventLog, EventLogService } from "../../../src/service/event_log.ts";
import { type HttpReply, request, type RequestOptions } from "../../support/http_client.ts";
import { alteredLog } from "../../support/stub_log.ts";
import { type ServedLog, withServedLog } from "./served_log.ts";

/**
 * One request in the tour. `example` names the documentation example recorded from the response;
 * null if another stop already covers it. `before` prepares the server.
 */
export type TourStop = [
  example: string | null,
  request: RequestOptions,
  before?: (server: TourServer) => void,
];

export interface TourServer extends ServedLog {
  /** Reserves the whole memory budget for bodies. */
  fillRoom(): void;
  freeRoom(): void;
}

const TOKEN = "s3cret";
const ROOM_BYTES = 2 * INGEST_BODY_BYTES_MAX;

/** Sends the requests in a tour and passes each reply to `visit`. */
export async function makeTour(
  stops: readonly TourStop[],
  visit: (stop: TourStop, reply: HttpReply) => void,
): Promise<void> {
  const admission = new Admission({ totalBytes: ROOM_BYTES, waitersMax: 0 });
  const handler = { token: TOKEN, admission };
  await withServedLog(async (log) => {
    const server = { ...log, ...roomOf(admission) };
    for (const stop of stops) {
      const [_example, options, before] = stop;
      before?.(server);
      const headers = { authorization: `Bearer ${TOKEN}`, ...options.headers };
      visit(stop, await request(log.socketPath, { ...options, headers }));
    }
  }, { handler, log: failing });
}

function roomOf(admission: Admission): Pick<TourServer, "fillRoom" | "freeRoom"> {
  const held = { bytes: 0 };
  return {
    fillRoom: () => void admission.grow(held, ROOM_BYTES - INGEST_BODY_BYTES_MAX),
    freeRoom: () => admission.release(held),
  };
}

/** A log that fails reads of kind `unreadable` and rejects some followers. */
function failing(service: EventLogService): EventLog {
  return alteredLog(service, {
    replay(query) {
      if (query.filter.kind === "unreadable") throw new Error("EIO: read");
      return service.replay(query);
    },
    follow(query) {
      if (query.filter.kind === "overloaded") {
        throw new ApiError("overloaded", "too many followers");
      }
      return service.follow(query);
    },
    streams(query) {
      if (query.source === "unreadable") throw new Error("EIO: read");
      return service.streams(query);
    },
  });
}

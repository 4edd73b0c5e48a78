/** The HTTP API over an in-memory log, shut down in order. A test can make the log's disk fail. */
import { createHandler, type HandlerOptions } from "../../../src/api/handler.ts";
import type { ListenOptions } from "../../../src/http/server.ts";
import type { EventLog, EventLogService } from "../../../src/service/event_log.ts";
import { isSkippedForExecutable } from "../../support/tested_service.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { withHandler } from "../../support/test_server.ts";
import { openTestService } from "../../support/test_service.ts";
import type { SealingOn } from "../../support/test_log.ts";

export interface ServedLog {
  socketPath: string;
  storage: SimulatedDisk;
  service: EventLogService;
  /** Lines reported to the operator. */
  reports: string[];
  /** Shuts down in the same order as `serve`: followers, connections, writer. */
  shutDown(): Promise<void>;
}

export interface ServedLogOptions {
  /** The disk that holds the log. It outlives the service, so another one can be started on it. */
  storage?: SimulatedDisk;
  /** By default, the log is not sealed. */
  sealingOn?: SealingOn;
  /** Wraps the log used by the API. By default, the API uses the service itself. */
  log?: (service: EventLogService) => EventLog;
  handler?: Partial<Omit<HandlerOptions, "log">>;
  listen?: Partial<ListenOptions>;
}

/** Runs `use` against a served log, then shuts it down. */
export async function withServedLog(
  use: (log: ServedLog) => Promise<void>,
  options: ServedLogOptions = {},
): Promise<void> {
  if (isSkippedForExecutable()) return;
  const { storage = new SimulatedDisk(), log = (service) => service, listen = {} } = options;
  const { service, reports } = await openTestService(storage, options.sealingOn);
  const handler = createHandler({
    log: log(service),
    token: "",
    replay: { defaultLimit: 1000, maxLimit: 100_000 },
    report: (line) => void reports.push(line),
    ...options.handler,
  });
  let closed: Promise<void> | undefined;
  const close = () => closed ??= service.close();
  try {
    await withHandler(handler, async ({ socketPath, server }) => {
      const shutDown = async () => {
        service.endFollowers();
        await server.close();
        await close();
      };
      try {
        await use({ socketPath, storage, service, reports, shutDown });
      } finally {
        service.endFollowers();
      }
    }, { report: (line) => void reports.push(line), ...listen });
  } finally {
    await close();
  }
}

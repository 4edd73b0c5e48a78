/** Opens logs behind an order monitor, so tests that use them also check the order. */
import { type Log, type LogOptions, openLog, type SealingOptions } from "../../src/log/log.ts";
import type { Storage } from "../../src/log/storage/storage.ts";
import { type EventLogService, openEventLog } from "../../src/service/event_log.ts";
import { OrderMonitor } from "./order_monitor.ts";

/** Configures sealing on the monitored storage. */
export type SealingOn = (storage: Storage) => SealingOptions;

/** Like `openLog()`, with the order monitor in front of the storage. */
export async function openWatchedLog(options: LogOptions, sealingOn?: SealingOn): Promise<Log> {
  const monitor = new OrderMonitor(options.storage);
  const log = await openLog({ ...options, storage: monitor, ...sealingOf(monitor, sealingOn) });
  const append = log.append.bind(log);
  log.append = async (batches) => {
    const committed = await append(batches);
    for (const { last_event_id } of committed) monitor.receipt(last_event_id, { isNew: true });
    return committed;
  };
  return log;
}

/** Like `openEventLog()`, with the order monitor in front of the storage. */
export async function openWatchedService(
  options: LogOptions,
  sealingOn?: SealingOn,
): Promise<EventLogService> {
  const monitor = new OrderMonitor(options.storage);
  const sealing = sealingOf(monitor, sealingOn);
  const service = await openEventLog({ ...options, storage: monitor, ...sealing });
  watchReceipts(service, monitor);
  watchReaders(service, monitor);
  return service;
}

function sealingOf(storage: Storage, sealingOn?: SealingOn): Pick<LogOptions, "sealing"> {
  return sealingOn === undefined ? {} : { sealing: sealingOn(storage) };
}

function watchReceipts(service: EventLogService, monitor: OrderMonitor): void {
  const append = service.append.bind(service);
  service.append = async (batch) => {
    const receipt = await append(batch);
    monitor.receipt(receipt.last_event_id, { isNew: receipt.status === "committed" });
    return receipt;
  };
  const retire = service.retire.bind(service);
  service.retire = async (source) => {
    const receipt = await retire(source);
    monitor.receipt(receipt.retirement_event_id, { isNew: receipt.status === "retired" });
    return receipt;
  };
}

function watchReaders(service: EventLogService, monitor: OrderMonitor): void {
  const replay = service.replay.bind(service);
  service.replay = (query, client) => watchPieces(replay(query, client), monitor);
  const follow = service.follow.bind(service);
  service.follow = (query) => watchPieces(follow(query), monitor);
}

/** A source of events, chunk by chunk. */
interface Pieces {
  next(): Promise<Uint8Array | null>;
}

function watchPieces<Source extends Pieces>(source: Source, monitor: OrderMonitor): Source {
  const next = source.next.bind(source);
  source.next = async () => {
    const piece = await next();
    if (piece !== null) monitor.reading(piece);
    return piece;
  };
  return source;
}

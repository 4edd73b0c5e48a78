/** Delivery to one follower, for servers that speak the service's protocol. */
import type { Buffer } from "node:buffer";
import { FollowerClient } from "../support/follower_client.ts";
import { type RawResponse, ResponseParser } from "../support/response_parser.ts";
import { ingestWorkload } from "../support/workloads.ts";
import { Connection } from "./connection.ts";
import { Arrivals, measureArrivals } from "./delivery.ts";
import type { LoadTimes } from "./load.ts";
import type { Measurement } from "./measurement.ts";

/** Opens the same kind of connection that is used for the peers. */
export function openOurs(socketPath: string): Promise<Connection<RawResponse>> {
  const parser = new ResponseParser();
  const push = (data: Buffer) => parser.push(data);
  return Connection.open(socketPath, { expect: () => {}, push });
}

/** Sends single events, and measures their arrival at one follower. */
export async function measureDelivery(
  { socketPath, pid }: { socketPath: string; pid: number },
  times: LoadTimes,
): Promise<Measurement> {
  const arrivals = new Arrivals();
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {});
  const onEvents = (events: number) => arrivals.markReceived(events);
  const follower = await FollowerClient.open(socketPath, null, onEvents, failure.reject);
  const client = await openOurs(socketPath);
  const workload = ingestWorkload("deliver", 1);
  const send = async () => {
    workload.accept(await client.exchange(workload.next()));
  };
  try {
    const delivery = { serverPid: pid, send, failed: failure.promise };
    return await measureArrivals(delivery, arrivals, times);
  } finally {
    client.close();
    follower.close();
  }
}

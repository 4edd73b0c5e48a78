/** Appends to and reads from a served deployment, through the client. */
import { type CommittedEvent, EventLogClient, type SubmittedEvent } from "../../../mod.ts";
import type { Deployment } from "../../../tests/support/deployment.ts";

/** Appends events from source `test` under a batch id. */
export async function append(
  { serving }: Deployment,
  batchId: string,
  events: SubmittedEvent[],
): Promise<void> {
  await new EventLogClient(serving.fetch).append({ source: "test", batchId, events });
}

/** Reads all events in a small log. */
export async function readLog({ serving }: Deployment): Promise<CommittedEvent[]> {
  const events: CommittedEvent[] = [];
  for await (const event of new EventLogClient(serving.fetch).replay()) events.push(event);
  return events;
}

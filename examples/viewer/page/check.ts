/** Verifies an event's hashes in the browser, with the library's code. */
import { type CommittedEvent, verifyEvent } from "../../../event.ts";
import type { CheckedEvent } from "./elements.ts";

export async function check(event: CommittedEvent): Promise<CheckedEvent> {
  try {
    const { contentHash, eventHash } = await verifyEvent(event);
    const faults = [
      ...(contentHash ? [] : ["the payload does not match content_hash"]),
      ...(eventHash ? [] : ["the event does not match event_hash"]),
    ];
    return { event, fault: faults.join("; ") || null };
  } catch (error) {
    return { event, fault: (error as Error).message };
  }
}

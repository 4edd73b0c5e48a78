/** Looks into the database of `sqlite_view` from outside, and makes events for it. */
import { DatabaseSync } from "node:sqlite";
import type { CommittedEvent } from "../../../mod.ts";

export interface ViewContents {
  position: string | null;
  /** Payload by `source/stream/record_key`. */
  records: Record<string, string>;
}

export function readView(path: string): ViewContents {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const records: Record<string, string> = {};
    for (const row of database.prepare("SELECT * FROM records").all()) {
      records[`${row.source}/${row.stream}/${row.record_key}`] = row.payload as string;
    }
    const { next_after } = database.prepare("SELECT next_after FROM position").get()!;
    return { position: next_after as string | null, records };
  } finally {
    database.close();
  }
}

export function committedEvent(
  n: number,
  recordKey: string,
  kind: string,
  payload: unknown,
): CommittedEvent {
  return {
    event_id: `01900000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`,
    source: "test",
    stream: "items",
    record_key: recordKey,
    kind,
    observed_at: "2026-01-01T00:00:00.000Z",
    payload,
    content_hash: "0".repeat(64),
    batch_id: "b",
    event_hash: "0".repeat(64),
  };
}

/** Reads the database of `sqlite_view`. */
import { DatabaseSync } from "node:sqlite";

export interface ViewContents {
  position: string | null;
  /** Payloads keyed by `source/stream/record_key`. */
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

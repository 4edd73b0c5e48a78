/**
 * Stores the current state of every record, and the log position it reflects, in a SQLite database.
 * Both are updated in one transaction, so after a crash the table matches the position.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { canonicalize, type CommittedEvent } from "../../mod.ts";

// With synchronous = NORMAL, a power failure may roll back transactions. It also rolls back their
// positions, so the events are replayed.
const SCHEMA = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS records (
    source TEXT NOT NULL,
    stream TEXT NOT NULL,
    record_key TEXT NOT NULL,
    payload TEXT NOT NULL,   -- canonical JSON
    event_id TEXT NOT NULL,  -- id of the last upsert
    PRIMARY KEY (source, stream, record_key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS position (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    next_after TEXT
  ) STRICT;
  INSERT OR IGNORE INTO position VALUES (1, NULL);
`;

export class RecordView {
  readonly #database: DatabaseSync;
  readonly #upsert: StatementSync;
  readonly #delete: StatementSync;
  readonly #move: StatementSync;
  #position: string | null;

  /** Opens the database; creates it if needed. */
  constructor(path: string) {
    this.#database = new DatabaseSync(path);
    this.#database.exec(SCHEMA);
    this.#upsert = this.#database.prepare("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)");
    this.#delete = this.#database.prepare(
      "DELETE FROM records WHERE source = ? AND stream = ? AND record_key = ?",
    );
    this.#move = this.#database.prepare("UPDATE position SET next_after = ? WHERE next_after IS ?");
    const row = this.#database.prepare("SELECT next_after FROM position").get();
    this.#position = row!.next_after as string | null;
  }

  /** Position to resume from; null for the beginning of the log. */
  get position(): string | null {
    return this.#position;
  }

  /**
   * Applies the events from the position to `nextAfter` atomically.
   * @throws {Error} if another process has moved the position; nothing is changed.
   */
  apply(events: readonly CommittedEvent[], nextAfter: string | null): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      if (this.#move.run(nextAfter, this.#position).changes !== 1) {
        throw new Error("another process has updated this database; run only one at a time");
      }
      for (const event of events) this.#applyEvent(event);
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#database.exec("ROLLBACK");
      throw error;
    }
    this.#position = nextAfter;
  }

  close(): void {
    this.#database.close();
  }

  /** Applies an upsert or a deletion. Other event kinds do not affect the record's state. */
  #applyEvent({ source, stream, record_key, kind, payload, event_id }: CommittedEvent): void {
    if (kind === "upserted") {
      this.#upsert.run(source, stream, record_key, canonicalize(payload), event_id);
    } else if (kind === "deleted") {
      this.#delete.run(source, stream, record_key);
    }
  }
}

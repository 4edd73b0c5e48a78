/** A table of events with distinct keys and an index on them. */
import { keyedBatch } from "../support/requests.ts";
import { eventsOf } from "./events.ts";
import { type LoadTimes, measureLoad } from "./load.ts";
import type { Measurement } from "./measurement.ts";
import { queryMessage, terminateMessage } from "./pg_messages.ts";
import { copyRequest, keyRequestOf, openPrepared } from "./postgres.ts";
import { type Postgres, runSql } from "./postgres_server.ts";
import { FILL_BATCH_EVENTS } from "./rows.ts";

export class KeyedTable {
  readonly #postgres: Postgres;
  readonly #events: number;

  private constructor(postgres: Postgres, events: number) {
    this.#postgres = postgres;
    this.#events = events;
  }

  /** Fills the table with full batches. */
  static async fill(postgres: Postgres, events: number): Promise<KeyedTable> {
    const connection = await openPrepared(postgres);
    const batches = events / FILL_BATCH_EVENTS;
    for (let number = 0; number < batches; number++) {
      await connection.exchange(copyRequest(eventsOf(keyedBatch(number, FILL_BATCH_EVENTS))));
    }
    await connection.exchange(queryMessage("CREATE INDEX ON events (record_key)"));
    await connection.exchange(queryMessage("VACUUM ANALYZE events"));
    connection.close(terminateMessage());
    await runSql(postgres, "CHECKPOINT");
    return new KeyedTable(postgres, events);
  }

  /** Looks up keys with one client, one after another, `step` apart. */
  async measureLookups(step: number, times: LoadTimes): Promise<Measurement> {
    const connection = await openPrepared(this.#postgres);
    const events = this.#events;
    let number = 0;
    const client = {
      exchange(done: (events: number) => void, failed: (error: Error) => void) {
        connection.send(keyRequestOf(`customer-${number++ * step % events}`), 1, ({ rows }) => {
          if (rows === 1) done(1);
          else failed(new Error(`the lookup of a key returned ${rows} rows`));
        }, failed);
      },
      close: () => connection.close(terminateMessage()),
    };
    return await measureLoad([client], this.#postgres.pid, times);
  }
}

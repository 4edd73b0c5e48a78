/** An in-memory DuckDB session. */
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";

export type Row = Record<string, unknown>;

/** Runs `use` with a connection, then closes it. */
export async function withDuckDb<T>(use: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  try {
    return await use(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Runs a query and returns its rows. */
export async function rowsOf(connection: DuckDBConnection, sql: string): Promise<Row[]> {
  return (await connection.runAndReadAll(sql)).getRowObjectsJson();
}

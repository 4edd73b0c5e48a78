/** The clients that load a log. */
import type { ClientCounts } from "./bounds.ts";
import { LogFollower } from "./follower.ts";
import type { Load } from "./load.ts";
import { Reader } from "./reader.ts";
import { Writer } from "./writer.ts";

/**
 * Runs clients until the load ends, and resolves when all have ended. @param number number of the
 * log, which makes client names unique. @param onFailure receives each failed client's error.
 */
export async function runClients(
  load: Load,
  number: number,
  { writers, readers, followers }: ClientCounts,
  onFailure: (error: unknown) => void,
): Promise<void> {
  const named = <T>(kind: string, count: number, make: (name: string) => T) =>
    Array.from({ length: count }, (_, place) => make(`${kind}-${number}-${place}`));
  const clients = [
    ...named("writer", writers, (name) => new Writer(load, name)),
    ...named("reader", readers, (name) => new Reader(load, name)),
    ...named("follower", followers, (name) => new LogFollower(load, name)),
  ];
  await Promise.all(clients.map((client) => client.run().catch(onFailure)));
}

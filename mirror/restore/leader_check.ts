/**
 * Detects a leader that was suspended: for seconds it may still answer for a stream that has
 * another leader by now, and know nothing of the messages since.
 */
import type { StreamInfo } from "@nats-io/jetstream";

/**
 * Replicas answer their leader every second. They elect another after at least 4 s without one
 * (`hbIntervalDefault` and `minElectionTimeoutDefault` in nats-server's raft.go).
 */
const HEARD_NS_MAX = 3e9;

/** @throws {Error} unless a majority of the stream's replicas has just answered its leader. */
export function checkLeader({ config, cluster }: Pick<StreamInfo, "config" | "cluster">): void {
  const { leader, replicas = [] } = cluster ?? {};
  const silent = replicas.filter(({ active }) => active > HEARD_NS_MAX);
  if (2 * silent.length <= replicas.length) return;
  if (leader === undefined) throw new Error(`stream ${config.name} has no leader`);
  throw new Error(
    `server ${leader} may no longer lead stream ${config.name}: ` +
      `${silent.map(({ name }) => name).join(", ")} did not answer it`,
  );
}

/**
 * The service's peak memory and descriptors, from /proc. Without /proc, nothing is checked. Growth
 * is not, because a process seldom lives long in a soak.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { CLIENT_SOCKETS_MAX } from "../../src/client/unix_fetch.ts";
import { claim } from "./violation.ts";

/** What the service needs at most under all loads at once. */
const MEMORY_MIB_MAX = 1024;
/**
 * The service's own descriptors, and up to two per socket that the clients may open. Those of
 * segments are not counted, as their number grows with the log up to a limit.
 */
const DESCRIPTORS_MAX = 64 + 2 * CLIENT_SOCKETS_MAX;

export class Vitals {
  #memoryMib = 0;
  #descriptors = 0;

  /** Samples a process unless it has exited. @throws {Violation} if it exceeds the limits. */
  look(pid: number): void {
    const [memoryMib, descriptors] = sampleOf(pid);
    if (memoryMib === undefined || descriptors === undefined) return;
    claim(memoryMib <= MEMORY_MIB_MAX, `serve uses ${memoryMib} MiB, at most ${MEMORY_MIB_MAX}`);
    const told = `${descriptors} descriptors, at most ${DESCRIPTORS_MAX}`;
    claim(descriptors <= DESCRIPTORS_MAX, `serve has ${told}`);
    this.#memoryMib = Math.max(this.#memoryMib, memoryMib);
    this.#descriptors = Math.max(this.#descriptors, descriptors);
  }

  toString(): string {
    return `peak ${this.#memoryMib} MiB, ${this.#descriptors} descriptors`;
  }
}

/** Returns the memory and the number of descriptors of a process; nothing if it has exited. */
function sampleOf(pid: number): number[] {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const folder = `/proc/${pid}/fd`;
    const targets = readdirSync(folder).map((name) => readlinkSync(`${folder}/${name}`));
    const memoryKib = Number(/^VmRSS:\s*([0-9]+) kB$/m.exec(status)?.[1]);
    const isSegment = (path: string) => path.endsWith(".parquet");
    return [Math.round(memoryKib / 1024), targets.filter((path) => !isSegment(path)).length];
  } catch {
    // There is no /proc, a descriptor was just closed, or the process has exited.
    return [];
  }
}

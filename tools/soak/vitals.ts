/**
 * The service's memory and descriptors over time, from /proc. Without /proc, nothing is checked. A
 * sample above the limits is an immediate violation. A leak shows up as growth of the median from
 * the first quarter of a soak to the last.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { CLIENT_SOCKETS_MAX } from "../../src/client/unix_fetch.ts";
import { LIVE_PAGES_BYTES_MAX } from "../../src/limits.ts";
import { ROW_GROUP_CACHE_BYTES_MAX } from "../../src/log/segment/row_group_cache.ts";
import { FILTERS_BYTES_MAX } from "../../src/log/segment/sealed_history.ts";
import { PREPARED_BYTES_MAX } from "../../src/service/batch_preparer.ts";
import { claim } from "./violation.ts";
import { median } from "../support/median.ts";

const MIB = 1024 * 1024;
/** What the service needs at most under all loads at once. A larger sample is a violation. */
const MEMORY_BYTES_MAX = 1024 * MIB;
/** Total size of the service's caches when full. */
const CACHES_BYTES = ROW_GROUP_CACHE_BYTES_MAX + FILTERS_BYTES_MAX + LIVE_PAGES_BYTES_MAX +
  PREPARED_BYTES_MAX;
/** A sealing thread: its runtime, and the largest row group in several representations. */
const SEALING_BYTES = 256 * MIB;
/** Allowed growth of median memory from the first quarter of a run to the last, as caches fill. */
const MEMORY_GROWTH_BYTES_MAX = CACHES_BYTES + SEALING_BYTES;
/** The service's own descriptors, and up to two per socket that the clients may open. */
const DESCRIPTORS_MAX = 64 + 2 * CLIENT_SOCKETS_MAX;
/** Allowed growth of the median descriptor count. */
const DESCRIPTORS_GROWTH_MAX = 32;
/** Minimum number of samples for a meaningful median. */
const SAMPLES_MIN = 20;

export class Vitals {
  readonly #memoryBytes: number[] = [];
  /** Excludes descriptors for segments, whose number grows with the log up to a limit. */
  readonly #descriptors: number[] = [];

  /** Samples a process unless it has exited. @throws {Violation} if it exceeds the limits. */
  look(pid: number): void {
    const [memoryBytes, descriptors] = sampleOf(pid);
    if (memoryBytes === undefined || descriptors === undefined) return;
    const memory = `${inMib(memoryBytes)}, more than the limit of ${inMib(MEMORY_BYTES_MAX)}`;
    claim(memoryBytes <= MEMORY_BYTES_MAX, `serve uses ${memory}`);
    const open = `${descriptors} open descriptors, more than the limit of ${DESCRIPTORS_MAX}`;
    claim(descriptors <= DESCRIPTORS_MAX, `serve has ${open}`);
    this.#memoryBytes.push(memoryBytes);
    this.#descriptors.push(descriptors);
  }

  /** A summary of the newest sample. */
  get latest(): string {
    const [memoryBytes, descriptors] = [this.#memoryBytes.at(-1), this.#descriptors.at(-1)];
    if (memoryBytes === undefined) return "memory unknown";
    return `${inMib(memoryBytes)}, ${descriptors} descriptors`;
  }

  /** Summarizes the first and last quarter. @throws {Violation} if they differ too much. */
  conclude(): string {
    if (this.#memoryBytes.length < 4) return "memory unknown";
    const [firstBytes, lastBytes] = mediansOf(this.#memoryBytes);
    const [first, last] = mediansOf(this.#descriptors);
    const memory = `memory ${inMib(firstBytes)} -> ${inMib(lastBytes)}`;
    const descriptors = `descriptors ${first} -> ${last}`;
    const isShort = this.#memoryBytes.length < SAMPLES_MIN;
    claim(isShort || lastBytes - firstBytes <= MEMORY_GROWTH_BYTES_MAX, `serve leaks: ${memory}`);
    claim(isShort || last - first <= DESCRIPTORS_GROWTH_MAX, `serve leaks: ${descriptors}`);
    return `${memory}, ${descriptors}`;
  }
}

/** Returns the memory and the number of descriptors of a process; nothing if it has exited. */
function sampleOf(pid: number): number[] {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const folder = `/proc/${pid}/fd`;
    const targets = readdirSync(folder).map((name) => readlinkSync(`${folder}/${name}`));
    const kib = Number(/^VmRSS:\s*([0-9]+) kB$/m.exec(status)?.[1]);
    return [kib * 1024, targets.filter((path) => !path.endsWith(".parquet")).length];
  } catch {
    // There is no /proc, a descriptor was just closed, or the process has exited.
    return [];
  }
}

/** Returns the medians of the first quarter and of the last. */
function mediansOf(samples: readonly number[]): [first: number, last: number] {
  const quarter = Math.floor(samples.length / 4);
  return [median(samples.slice(0, quarter)), median(samples.slice(-quarter))];
}

function inMib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}

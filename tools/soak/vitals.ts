/**
 * The service's memory and descriptors over time, from /proc. Without /proc, nothing is checked. A
 * sample above the limits is an immediate violation. A leak shows up as growth of the median from
 * the first quarter of a soak to the last.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import {
  DESCRIPTORS_GROWTH_MAX,
  DESCRIPTORS_MAX,
  MEMORY_BYTES_MAX,
  MEMORY_GROWTH_BYTES_MAX,
  SAMPLES_MAX,
} from "./bounds.ts";
import { claim } from "./violation.ts";
import { median } from "../support/median.ts";

const MIB = 1024 * 1024;
/** Minimum number of samples for a meaningful median. */
const SAMPLES_MIN = 40;

export interface Sample {
  memoryBytes: number;
  /** Excludes descriptors for segments, whose number grows with the log up to a limit. */
  descriptors: number;
}

export class Vitals {
  #samples: Sample[] = [];
  /** One out of this many samples is kept. */
  #stride = 1;
  #looks = 0;

  /** Samples a process unless it has exited. @throws {Violation} if it exceeds the limits. */
  look(pid: number): void {
    const sample = sampleOf(pid);
    if (sample !== null) this.add(sample);
  }

  /** Adds a sample. @throws {Violation} if the sample exceeds the limits. */
  add(sample: Sample): void {
    const { memoryBytes, descriptors } = sample;
    claim(
      memoryBytes <= MEMORY_BYTES_MAX,
      `serve uses ${inMib(memoryBytes)}, more than the limit of ${inMib(MEMORY_BYTES_MAX)}`,
    );
    claim(
      descriptors <= DESCRIPTORS_MAX,
      `serve has ${descriptors} open descriptors, more than the limit of ${DESCRIPTORS_MAX}`,
    );
    if (this.#looks++ % this.#stride === 0) this.#samples.push(sample);
    if (this.#samples.length < SAMPLES_MAX) return;
    this.#samples = this.#samples.filter((_, place) => place % 2 === 0);
    this.#stride *= 2;
  }

  /** A summary of the newest sample. */
  get latest(): string {
    const sample = this.#samples.at(-1);
    return sample === undefined
      ? "memory unknown"
      : `${inMib(sample.memoryBytes)}, ${sample.descriptors} descriptors`;
  }

  /** Summarizes the first and last quarter. @throws {Violation} if they differ too much. */
  conclude(): string {
    const samples = this.#samples;
    if (samples.length < 4) return "memory unknown";
    const quarter = Math.floor(samples.length / 4);
    const first = medians(samples.slice(0, quarter));
    const last = medians(samples.slice(-quarter));
    const memory = `memory ${inMib(first.memoryBytes)} -> ${inMib(last.memoryBytes)}`;
    const descriptors = `descriptors ${first.descriptors} -> ${last.descriptors}`;
    if (samples.length >= SAMPLES_MIN) {
      const growth = last.memoryBytes - first.memoryBytes;
      claim(growth <= MEMORY_GROWTH_BYTES_MAX, `serve leaks: ${memory}`);
      const more = last.descriptors - first.descriptors;
      claim(more <= DESCRIPTORS_GROWTH_MAX, `serve leaks: ${descriptors}`);
    }
    return `${memory}, ${descriptors}`;
  }
}

function sampleOf(pid: number): Sample | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const kib = /^VmRSS:\s*([0-9]+) kB$/m.exec(status)?.[1];
    if (kib === undefined) return null;
    return {
      memoryBytes: Number(kib) * 1024,
      descriptors: targets(`/proc/${pid}/fd`).filter((path) => !path.endsWith(".parquet")).length,
    };
  } catch {
    // There is no /proc, or the process has just exited. Its owner detects the latter.
    return null;
  }
}

/** Returns targets of descriptors in a /proc directory; "" for one closed since it was listed. */
function targets(dir: string): string[] {
  return readdirSync(dir).map((name) => {
    try {
      return readlinkSync(`${dir}/${name}`);
    } catch {
      return "";
    }
  });
}

function medians(samples: readonly Sample[]): Sample {
  return {
    memoryBytes: median(samples.map(({ memoryBytes }) => memoryBytes)),
    descriptors: median(samples.map(({ descriptors }) => descriptors)),
  };
}

function inMib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}

/** What the operating system says a process has used. From /proc: on Linux only. */
import { readdirSync, readFileSync } from "node:fs";

/** Unit of the times in /proc: fixed at 100 a second for programs on all common machines. */
const TICKS_PER_SECOND = 100;

/** Processor time of a process so far, in user and system mode; null where /proc is not there. */
export function cpuSeconds(pid: number): number | null {
  const stat = readProc(pid, "stat");
  if (stat === null) return null;
  // The name in parentheses may hold anything; the fields after it are numbers from the third on.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** The most memory a process has held at once, in bytes; null where /proc is not there. */
export function peakMemoryBytes(pid: number): number | null {
  return statusBytes(pid, "VmHWM");
}

/** What memory a process holds now, in bytes; null where /proc is not there. */
export function memoryBytes(pid: number): number | null {
  return statusBytes(pid, "VmRSS");
}

/** Descriptors that a process has open; null where /proc is not there. */
export function openDescriptors(pid: number): number | null {
  return ifThere(() => readdirSync(`/proc/${pid}/fd`).length);
}

function statusBytes(pid: number, field: string): number | null {
  const match = new RegExp(`^${field}:\\s*([0-9]+) kB$`, "m").exec(readProc(pid, "status") ?? "");
  return match === null ? null : Number(match[1]) * 1024;
}

function readProc(pid: number, name: string): string | null {
  return ifThere(() => readFileSync(`/proc/${pid}/${name}`, "utf8"));
}

function ifThere<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return null;
    throw error;
  }
}

/** Resource usage of a process, from /proc (Linux only). */
import { readdirSync, readFileSync } from "node:fs";

/** Clock ticks per second in /proc, the same on all common platforms. */
const TICKS_PER_SECOND = 100;

/** Returns the user and system CPU time of a process so far; null without /proc. */
export function cpuSeconds(pid: number): number | null {
  const stat = readProc(pid, "stat");
  if (stat === null) return null;
  // The name in parentheses may contain any character. The numeric fields follow it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Returns the peak memory of a process in bytes; null without /proc. */
export function peakMemoryBytes(pid: number): number | null {
  return statusBytes(pid, "VmHWM");
}

/** Returns the current memory of a process in bytes; null without /proc. */
export function memoryBytes(pid: number): number | null {
  return statusBytes(pid, "VmRSS");
}

/** Returns the number of open descriptors of a process; null without /proc. */
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

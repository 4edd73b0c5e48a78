/** Resource usage of a process, from /proc (Linux only). */
import { readdirSync, readFileSync } from "node:fs";

/** Clock ticks per second in /proc, the same on all common platforms. */
const TICKS_PER_SECOND = 100;

/** Places of the times in /proc/PID/stat, counted from 0 after the name. */
const OWN_TIMES = [11, 12] as const;
/** The times of children that have exited and been waited for. */
const CHILD_TIMES = [13, 14] as const;

/** Returns the CPU time of a process's exited children so far; null without /proc. */
export function childrenCpuSeconds(pid: number): number | null {
  return secondsIn(pid, CHILD_TIMES);
}

/** Returns the CPU time of a process and its descendants, even exited ones; null without /proc. */
export function treeCpuSeconds(pid: number): number | null {
  const children = readProc(pid, `task/${pid}/children`)?.split(" ").filter(Boolean) ?? [];
  const running = children.map((child) => treeCpuSeconds(Number(child)) ?? 0);
  const own = secondsIn(pid, [...OWN_TIMES, ...CHILD_TIMES]);
  return own === null ? null : running.reduce((sum, seconds) => sum + seconds, own);
}

function secondsIn(pid: number, places: readonly number[]): number | null {
  const stat = readProc(pid, "stat");
  if (stat === null) return null;
  // The name in parentheses may contain any character. The numeric fields follow it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return places.reduce((sum, place) => sum + Number(fields[place]), 0) / TICKS_PER_SECOND;
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
    // A process that exits during a read fails with ESRCH.
    if (["ENOENT", "ESRCH"].includes((error as { code?: string }).code ?? "")) return null;
    throw error;
  }
}

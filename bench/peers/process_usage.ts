/**
 * Processor time of trees of processes, of ended children and of the whole machine, in seconds.
 * From /proc: on Linux only; elsewhere nothing is known.
 */
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";

/** Unit of the times in /proc: fixed at 100 a second for programs on all common machines. */
const TICKS_PER_SECOND = 100;

/** Fields of /proc/PID/stat behind the name, counted from 0. */
const FIELD = { parent: 1, user: 11, system: 12, childUser: 13, childSystem: 14 } as const;

interface ProcessTimes {
  parent: number;
  /** Its own time. */
  seconds: number;
  /** Time of its children that have ended and been waited for. */
  childSeconds: number;
}

/** Time of a process, of all below it, and of those that were; null where /proc is not there. */
export function treeCpuSeconds(rootPid: number): number | null {
  const processes = readProcesses();
  if (!processes.has(rootPid)) return null;
  let seconds = 0;
  for (const [pid, times] of processes) {
    if (isBelow(pid, rootPid, processes)) seconds += times.seconds + times.childSeconds;
  }
  return seconds;
}

/** Time of the children of this process that have ended; null where /proc is not there. */
export function endedChildrenCpuSeconds(): number | null {
  return readTimes(process.pid)?.childSeconds ?? null;
}

/** Time of this process, all threads. */
export function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Time that all processors together were busy; null where /proc is not there. */
export function machineCpuSeconds(): number | null {
  const text = readOrNull("/proc/stat");
  if (text === null) return null;
  const [user, nice, system, , , interrupts, softInterrupts] = text.slice(0, text.indexOf("\n"))
    .split(/\s+/).slice(1).map(Number);
  return (user! + nice! + system! + interrupts! + softInterrupts!) / TICKS_PER_SECOND;
}

function isBelow(pid: number, rootPid: number, processes: Map<number, ProcessTimes>): boolean {
  for (let at: number | undefined = pid; at !== undefined; at = processes.get(at)?.parent) {
    if (at === rootPid) return true;
  }
  return false;
}

function readProcesses(): Map<number, ProcessTimes> {
  const processes = new Map<number, ProcessTimes>();
  let names: string[];
  try {
    names = readdirSync("/proc");
  } catch {
    return processes;
  }
  for (const name of names) {
    const times = /^[0-9]+$/.test(name) ? readTimes(Number(name)) : null;
    if (times !== null) processes.set(Number(name), times);
  }
  return processes;
}

function readTimes(pid: number): ProcessTimes | null {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The name in parentheses may hold anything; what follows it are the state and numbers.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = (field: number) => Number(fields[field]);
  return {
    parent: ticks(FIELD.parent),
    seconds: (ticks(FIELD.user) + ticks(FIELD.system)) / TICKS_PER_SECOND,
    childSeconds: (ticks(FIELD.childUser) + ticks(FIELD.childSystem)) / TICKS_PER_SECOND,
  };
}

/** Null for a process that is gone, or a system without /proc. */
function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as { code?: string }).code ?? "")) return null;
    throw error;
  }
}

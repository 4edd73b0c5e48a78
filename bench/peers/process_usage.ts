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

/** How often the processes are read when some end meanwhile. */
const READS_MAX = 5;

/** Time of a process, of all below it, and of those that were; null where /proc is not there. */
export function treeCpuSeconds(rootPid: number): number | null {
  let tree = readTree(rootPid);
  for (let read = 1; read < READS_MAX; read++) {
    // The time of one that ends goes over to its parent: between two looks it may be at neither.
    const again = readTree(rootPid);
    const isSame = again.length === tree.length &&
      again.every(({ pid }, at) => pid === tree[at]!.pid);
    tree = again;
    if (isSame) break;
  }
  if (tree.length === 0) return null;
  return tree.reduce((sum, { seconds, childSeconds }) => sum + seconds + childSeconds, 0);
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

/** A process and all below it, by their ids. */
function readTree(rootPid: number): (ProcessTimes & { pid: number })[] {
  const processes = readProcesses();
  const isInTree = (pid: number): boolean => {
    for (let at: number | undefined = pid; at !== undefined; at = processes.get(at)?.parent) {
      if (at === rootPid) return true;
    }
    return false;
  };
  return [...processes].filter(([pid]) => processes.has(rootPid) && isInTree(pid))
    .map(([pid, times]) => ({ pid, ...times }))
    .toSorted((a, b) => a.pid - b.pid);
}

function readProcesses(): Map<number, ProcessTimes> {
  const processes = new Map<number, ProcessTimes>();
  for (const name of listProc()) {
    const times = /^[0-9]+$/.test(name) ? readTimes(Number(name)) : null;
    if (times !== null) processes.set(Number(name), times);
  }
  return processes;
}

function listProc(): string[] {
  try {
    return readdirSync("/proc");
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return [];
    throw error;
  }
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

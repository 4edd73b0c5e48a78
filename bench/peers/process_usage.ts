/**
 * CPU time of process trees, of exited children and of the whole machine, in seconds. It is read
 * from /proc, and therefore available only on Linux.
 */
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";

/** Clock ticks per second in /proc, the same on all common platforms. */
const TICKS_PER_SECOND = 100;

/** Fields of /proc/PID/stat after the name, counted from 0. */
const FIELD = { parent: 1, user: 11, system: 12, childUser: 13, childSystem: 14 } as const;

interface ProcessTimes {
  parent: number;
  /** The process's own time. */
  seconds: number;
  /** Time of the children that have exited and been waited for. */
  childSeconds: number;
}

/** Maximum number of retries when processes exit during a read. */
const READS_MAX = 5;

/** Returns the CPU time of a process and its descendants, even exited ones; null without /proc. */
export function treeCpuSeconds(rootPid: number): number | null {
  let tree = readTree(rootPid);
  for (let read = 1; read < READS_MAX; read++) {
    // When a process exits, its CPU time is added to its parent's. A single pass may miss it in
    // both.
    const again = readTree(rootPid);
    const isSame = again.length === tree.length &&
      again.every(({ pid }, at) => pid === tree[at]!.pid);
    tree = again;
    if (isSame) break;
  }
  if (tree.length === 0) return null;
  return tree.reduce((sum, { seconds, childSeconds }) => sum + seconds + childSeconds, 0);
}

/** Returns the CPU time of the exited children of this process; null without /proc. */
export function endedChildrenCpuSeconds(): number | null {
  return readTimes(process.pid)?.childSeconds ?? null;
}

/** Returns the CPU time of all threads of this process. */
export function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Returns the busy time of all cores together; null without /proc. */
export function machineCpuSeconds(): number | null {
  const text = readOrNull("/proc/stat");
  if (text === null) return null;
  const [user, nice, system, , , interrupts, softInterrupts] = text.slice(0, text.indexOf("\n"))
    .split(/\s+/).slice(1).map(Number);
  return (user! + nice! + system! + interrupts! + softInterrupts!) / TICKS_PER_SECOND;
}

/** Reads the times of a process and all its descendants. */
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
  // The name in parentheses may contain any character. The state and the numeric fields follow it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = (field: number) => Number(fields[field]);
  return {
    parent: ticks(FIELD.parent),
    seconds: (ticks(FIELD.user) + ticks(FIELD.system)) / TICKS_PER_SECOND,
    childSeconds: (ticks(FIELD.childUser) + ticks(FIELD.childSystem)) / TICKS_PER_SECOND,
  };
}

/** Reads a file; returns null if the process is gone or there is no /proc. */
function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as { code?: string }).code ?? "")) return null;
    throw error;
  }
}

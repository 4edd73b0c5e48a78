/** Parses the output of `strace -f -y` into calls with the lines on which each starts and ends. */

/** A system call in a traced process. Lines are counted from 0. */
export interface SystemCall {
  name: string;
  /** The arguments as strace prints them, truncated where another thread's line interrupts them. */
  args: string;
  /** The result as strace prints it; `?` for a call that never returned. */
  result: string;
  beganLine: number;
  endedLine: number;
}

const WHOLE = /^(\d+) +(\w+)\((.*)\) += (.*)$/s;
const BEGUN = /^(\d+) +(\w+)\((.*)<unfinished \.\.\.>$/s;
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (.*)$/s;

/** All calls that returned, in the order in which they returned. */
export function parseSystemCalls(lines: readonly string[]): SystemCall[] {
  const calls: SystemCall[] = [];
  /** The call in progress in each thread. */
  const begun = new Map<string, Omit<SystemCall, "result" | "endedLine">>();
  for (const [number, line] of lines.entries()) {
    const [, thread, name, args] = BEGUN.exec(line) ?? [];
    if (thread !== undefined) {
      begun.set(thread, { name: name!, args: args!, beganLine: number });
      continue;
    }
    const call = resumedCall(line, number, begun) ?? wholeCall(line, number);
    if (call !== null) calls.push(call);
  }
  return calls;
}

function wholeCall(line: string, number: number): SystemCall | null {
  const [, , name, args, result] = WHOLE.exec(line) ?? [];
  if (name === undefined) return null;
  return { name, args: args!, result: result!, beganLine: number, endedLine: number };
}

function resumedCall(
  line: string,
  number: number,
  begun: ReadonlyMap<string, Omit<SystemCall, "result" | "endedLine">>,
): SystemCall | null {
  const [, thread, name, , result] = RESUMED.exec(line) ?? [];
  const call = thread === undefined ? undefined : begun.get(thread);
  if (call === undefined || call.name !== name) return null;
  return { ...call, result: result!, endedLine: number };
}

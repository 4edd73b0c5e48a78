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

/** A line: a whole call, the beginning of one, or, after `<... `, its end. */
const LINE = /^(\d+) +(<\.\.\. )?(\w+)(?:\(| resumed>)(.*)(?:<unfinished \.\.\.>|\) += (.*))$/s;

/** All calls that returned, in the order in which they returned. */
export function parseSystemCalls(lines: readonly string[]): SystemCall[] {
  const calls: SystemCall[] = [];
  /** The call in progress in each thread. */
  const begun = new Map<string, Pick<SystemCall, "args" | "beganLine">>();
  for (const [number, line] of lines.entries()) {
    const [, thread, resumed, name, args, result] = LINE.exec(line) ?? [];
    if (thread === undefined) continue;
    const call = resumed === undefined ? { args: args!, beganLine: number } : begun.get(thread);
    if (call === undefined) continue;
    if (result === undefined) begun.set(thread, call);
    else calls.push({ name: name!, ...call, result, endedLine: number });
  }
  return calls;
}

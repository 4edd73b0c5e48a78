/** A command's output, written synchronously so that an exit loses nothing, and what stops it. */
import { fstatSync, writeFileSync } from "node:fs";
import process from "node:process";
import { isatty } from "node:tty";
import { errorCode } from "../log/storage/storage.ts";

export interface Output {
  /** Writes to standard output, unless it is a closed pipe. @throws {Error} if it fails. */
  print(text: string): void;
  /** Writes a line to standard error. Never throws. */
  report(line: string): void;
  /** Replaces the progress text on standard error if that is a terminal. Never throws. */
  showProgress(text: string): void;
}

export interface Terminal extends Output {
  /** Aborted by the first signal that asks the program to end. */
  readonly stop: AbortSignal;
}

const STDOUT = 1;
const STDERR = 2;
/** Progress text is padded to this width, so that it covers the previous text. */
const PROGRESS_COLUMNS = 72;

/** The standard streams of this process. */
export const TERMINAL: Output = {
  print(text) {
    try {
      writeFileSync(STDOUT, text);
    } catch (error) {
      if (errorCode(error) !== "EPIPE") throw error;
    }
  },
  report: (line) => tell(`${line}\n`),
  showProgress(text) {
    if (isatty(STDERR)) tell(`\r${text.padEnd(PROGRESS_COLUMNS)}\r`);
  },
};

/**
 * Prefixes reported lines with the time, unless standard error is a terminal or the journal, which
 * adds timestamps itself. Counters contain the time; the line `serving` is fixed.
 */
export function addTimes(terminal: Output): void {
  const { report } = terminal;
  if (isatty(STDERR) || isJournal()) return;
  const now = () => new Date().toISOString();
  terminal.report = (line) => report(/^(?:\{|serving )/.test(line) ? line : `${now()} ${line}`);
}

/** Whether standard error is the journal, whose device and inode systemd passes in a variable. */
function isJournal(): boolean {
  try {
    const { dev, ino } = fstatSync(STDERR);
    return process.env.JOURNAL_STREAM === `${dev}:${ino}`;
  } catch {
    // Standard error is closed, or Deno has no permission to read the variable.
    return false;
  }
}

function tell(text: string): void {
  try {
    writeFileSync(STDERR, text);
  } catch {
    // Standard error is closed or full, so the error cannot be reported.
  }
}

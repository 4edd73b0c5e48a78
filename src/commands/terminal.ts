/** Output of commands, written synchronously so that an exit loses nothing. */
import { Buffer } from "node:buffer";
import { fstatSync, writeSync } from "node:fs";
import process from "node:process";
import { isatty } from "node:tty";

export interface Terminal {
  /** Writes `text` to standard output. @throws {Error} it is closed. */
  print(text: string): void;
  /** Writes a line to standard error. Never throws. */
  report(line: string): void;
  /**
   * Replaces the progress text on standard error if it is a terminal; an empty string clears it.
   * Never throws.
   */
  showProgress(text: string): void;
}

const STDOUT = 1;
const STDERR = 2;
/** Progress text is padded to this width, so that it covers the previous text. */
const PROGRESS_COLUMNS = 72;

/** The standard streams of this process. */
export const TERMINAL: Terminal = {
  print: (text) => writeAll(STDOUT, text),
  report: (line) => tell(`${line}\n`),
  showProgress(text) {
    if (isatty(STDERR)) tell(`\r${text.padEnd(PROGRESS_COLUMNS)}\r`);
  },
};

/**
 * Puts the time before reported lines, unless standard error is a terminal or the journal, which
 * adds its own. Counters are JSON and hold theirs.
 */
export function addTimes(terminal: Terminal): void {
  const { report } = terminal;
  const { dev, ino } = fstatSync(STDERR);
  if (isatty(STDERR) || journalStream() === `${dev}:${ino}`) return;
  const stamped = (line: string) =>
    line.startsWith("{") ? line : `${new Date().toISOString()} ${line}`;
  terminal.report = (line) => report(stamped(line));
}

/** systemd sets it to the device and inode of the journal's stream. */
function journalStream(): string | null {
  try {
    return process.env.JOURNAL_STREAM ?? null;
  } catch {
    // Deno has no permission to read it.
    return null;
  }
}

function tell(text: string): void {
  try {
    writeAll(STDERR, text);
  } catch {
    // Standard error is closed or full, so the error cannot be reported.
  }
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  let written = 0;
  while (written < bytes.length) written += writeSync(fd, bytes, written);
}

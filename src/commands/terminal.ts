/** Output of commands, written synchronously so that an exit loses nothing. */
import { Buffer } from "node:buffer";
import { writeSync } from "node:fs";
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
const PROGRESS_COLUMNS = 40;

/** The standard streams of this process. */
export const TERMINAL: Terminal = {
  print: (text) => writeAll(STDOUT, text),
  report: (line) => tell(`${line}\n`),
  showProgress(text) {
    if (isatty(STDERR)) tell(`\r${text.padEnd(PROGRESS_COLUMNS)}\r`);
  },
};

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

/** Where commands write, synchronously, so that an exit cuts nothing off. */
import { Buffer } from "node:buffer";
import { writeSync } from "node:fs";
import { isatty } from "node:tty";

export interface Terminal {
  /** Writes `text` to standard output. @throws {Error} when nobody takes it. */
  print(text: string): void;
  /** Writes a line to standard error. Never throws: no command fails for want of a reader. */
  report(line: string): void;
  /**
   * Shows a text in place of the one shown before, where standard error is a terminal, and nothing
   * otherwise. To be ended with an empty text. Never throws.
   */
  showProgress(text: string): void;
}

const STDOUT = 1;
const STDERR = 2;
/** Back to the start of the line, and clear it (ECMA-48, CR and EL). */
const ERASE_LINE = "\r\x1b[K";

/** The terminal, pipe or file that this process was started with. */
export const TERMINAL: Terminal = {
  print: (text) => writeAll(STDOUT, text),
  report: (line) => tell(`${line}\n`),
  showProgress(text) {
    if (isatty(STDERR)) tell(`${ERASE_LINE}${text}`);
  },
};

function tell(text: string): void {
  try {
    writeAll(STDERR, text);
  } catch {
    // Standard error is closed or full: there is no other place to say so.
  }
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  let written = 0;
  while (written < bytes.length) written += writeSync(fd, bytes, written);
}

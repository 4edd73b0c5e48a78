/** Output of commands, written synchronously so that an exit loses nothing. */
import { Buffer } from "node:buffer";
import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { isColorRefused, terminalKind } from "../runtime/environment.ts";

export interface Terminal {
  /** Writes `text` to standard output. @throws {Error} it is closed. */
  print(text: string): void;
  /** Writes a line to standard error. Never throws. */
  report(line: string): void;
  /** Writes an error to standard error, in color if possible. Never throws. */
  reportError(line: string): void;
  /**
   * Replaces the progress text on standard error, if that is a capable terminal. An empty text
   * clears it. Never throws.
   */
  showProgress(text: string): void;
}

const STDOUT = 1;
const STDERR = 2;
/** Clears the current line (ECMA-48, CR and EL). */
const ERASE_LINE = "\r\x1b[K";
/** Red and default color (ECMA-48, SGR). */
const RED = "\x1b[31m";
const RESET = "\x1b[0m";

/** The standard streams of this process. */
export const TERMINAL: Terminal = {
  print: (text) => writeAll(STDOUT, text),
  report: (line) => tell(`${line}\n`),
  reportError: (line) => tell(hasColors() ? `${RED}${line}${RESET}\n` : `${line}\n`),
  showProgress(text) {
    if (canErase()) tell(`${ERASE_LINE}${text}`);
  },
};

/** Returns whether standard error is a terminal with control sequences. */
function canErase(): boolean {
  return isatty(STDERR) && terminalKind() !== "dumb";
}

function hasColors(): boolean {
  return canErase() && !isColorRefused();
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

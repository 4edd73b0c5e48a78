/** Where commands write, synchronously, so that an exit cuts nothing off. */
import { Buffer } from "node:buffer";
import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { isColourRefused, terminalKind } from "../runtime/environment.ts";

export interface Terminal {
  /** Writes `text` to standard output. @throws {Error} when it is closed. */
  print(text: string): void;
  /** Writes a line to standard error. Never throws, not even when that is closed. */
  report(line: string): void;
  /** Writes a line to standard error that says why the command fails. Never throws. */
  reportError(line: string): void;
  /**
   * Shows a text in place of the one shown before, where standard error is a terminal that can do
   * that, and nothing otherwise. To be ended with an empty text. Never throws.
   */
  showProgress(text: string): void;
}

const STDOUT = 1;
const STDERR = 2;
/** Back to the start of the line, and clear it (ECMA-48, CR and EL). */
const ERASE_LINE = "\r\x1b[K";
/** Red, and the terminal's own colour again (ECMA-48, SGR). */
const RED = "\x1b[31m";
const RESET = "\x1b[0m";

/** The terminal, pipe or file that this process was started with. */
export const TERMINAL: Terminal = {
  print: (text) => writeAll(STDOUT, text),
  report: (line) => tell(`${line}\n`),
  reportError: (line) => tell(hasColours() ? `${RED}${line}${RESET}\n` : `${line}\n`),
  showProgress(text) {
    if (canErase()) tell(`${ERASE_LINE}${text}`);
  },
};

/** Whether standard error is a terminal that knows control sequences. */
function canErase(): boolean {
  return isatty(STDERR) && terminalKind() !== "dumb";
}

function hasColours(): boolean {
  return canErase() && !isColourRefused();
}

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

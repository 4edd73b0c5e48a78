/** Where commands write, synchronously, so that an exit cuts nothing off. */
import { Buffer } from "node:buffer";
import { writeSync } from "node:fs";

export interface Terminal {
  /** Writes `text` to standard output. @throws {Error} when nobody takes it. */
  print(text: string): void;
  /** Writes a line to standard error. Never throws: no command fails for want of a reader. */
  report(line: string): void;
}

const STDOUT = 1;
const STDERR = 2;

/** The terminal, pipe or file that this process was started with. */
export const TERMINAL: Terminal = {
  print: (text) => writeAll(STDOUT, text),
  report(line) {
    try {
      writeAll(STDERR, `${line}\n`);
    } catch {
      // Standard error is closed or full: there is no other place to say so.
    }
  },
};

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  let written = 0;
  while (written < bytes.length) written += writeSync(fd, bytes, written);
}

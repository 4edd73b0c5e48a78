/** Exit status of the program, and the error that carries one from any command to `run()`. */

export const EXIT_OK = 0;
/** I/O, permissions, a held lock, a corrupt log. */
export const EXIT_FAILURE = 1;
/** Bad arguments or an unusable configuration; nothing was tried. */
export const EXIT_USAGE = 2;
/** `verify` found a violation and printed its report. */
export const EXIT_VIOLATION = 3;
/** A mode, an anchor, a capability or a format that this program does not support. */
export const EXIT_UNSUPPORTED = 4;

/** Ends a command: `message` tells what happened, to what, and what to do, in one line. */
export class CommandError extends Error {
  override name = "CommandError";
  readonly exitStatus: number;

  constructor(exitStatus: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitStatus = exitStatus;
  }
}

/** Bad arguments or an unusable configuration. */
export function usageError(message: string): CommandError {
  return new CommandError(EXIT_USAGE, message);
}

/** Something stood in the way: a disk, a permission, another process, a damaged file. */
export function operationalError(message: string, cause?: unknown): CommandError {
  return new CommandError(EXIT_FAILURE, message, { cause });
}

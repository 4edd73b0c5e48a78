/** Exit statuses, which `EXITS` explains, and the error that carries one to `run()`. */

export const EXIT_OK = 0;
export const EXIT_FAILURE = 1;
export const EXIT_USAGE = 2;
export const EXIT_VIOLATION = 3;
export const EXIT_UNSUPPORTED = 4;

/** Ends a command. `message` says in one line what happened, to what, and what to do. */
export class CommandError extends Error {
  override name = "CommandError";
  readonly exitStatus: number;

  constructor(exitStatus: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitStatus = exitStatus;
  }
}

/** Creates an error about arguments or the configuration. */
export function usageError(message: string): CommandError {
  return new CommandError(EXIT_USAGE, message);
}

/** Creates an error about a disk, a permission, another process or a damaged file. */
export function operationalError(message: string, cause?: unknown): CommandError {
  return new CommandError(EXIT_FAILURE, message, { cause });
}

/** Which configured guarantees this program can give. A stronger one is refused, never ignored. */
import type { Config } from "./config.ts";
import { CommandError, EXIT_UNSUPPORTED } from "./exit.ts";

/**
 * Refuses a security mode other than `open` and an integrity anchor other than `none`.
 * @throws {CommandError} exit status 4.
 */
export function requireSupported(config: Config, command: string): void {
  const { path, securityMode, integrityAnchor } = config;
  if (securityMode !== "open") {
    throw unsupported(
      `${path}: [security] mode ${securityMode} is not supported by ${command}; set it to "open"`,
    );
  }
  if (integrityAnchor !== "none") {
    throw unsupported(
      `${path}: [integrity] anchor ${integrityAnchor} is not supported by ${command}; ` +
        'set it to "none"',
    );
  }
}

/** A refusal that no change of the input but a change of the request can lift. */
function unsupported(message: string): CommandError {
  return new CommandError(EXIT_UNSUPPORTED, message);
}

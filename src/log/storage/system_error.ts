/** Describes operating system errors to the operator. */
import { errorCode } from "./storage.ts";

/** Advice by error code. */
const ADVICE: Readonly<Record<string, string>> = {
  EACCES: "run as the user that owns the deployment",
  EPERM: "run as the user that owns the deployment",
  EROFS: "mount the file system read-write",
  ENOSPC: "free some disk space",
  EDQUOT: "free some space within this user's disk quota",
  EMFILE: "raise the limit on open files",
};

/** Returns an error's message on one line, followed by the advice for its code, if any. */
export function describeError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  // The error that caused this one may have the code.
  const causes = error instanceof Error ? [error, error.cause, (error.cause as Error)?.cause] : [];
  const advice = causes.map((cause) => ADVICE[errorCode(cause)]).find((found) => found);
  return text.replaceAll(/\s*\n\s*/g, " ") + (advice === undefined ? "" : `; ${advice}`);
}

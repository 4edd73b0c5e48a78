/** Describes operating system errors to the operator. */
import { errorCode } from "../log/storage/storage.ts";

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
  const advice = adviceFor(error);
  return text.replaceAll(/\s*\n\s*/g, " ") + (advice === undefined ? "" : `; ${advice}`);
}

/** Returns the advice for an error's code, or for the code of the error that caused it. */
function adviceFor(error: unknown): string | undefined {
  const advice = ADVICE[errorCode(error)];
  return advice ?? (error instanceof Error && error.cause ? adviceFor(error.cause) : undefined);
}

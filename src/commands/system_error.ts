/** What the operating system said, for messages and decisions. */

/** The errno name of a system error, such as `ENOENT`; empty for any other error. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** What to do about the errors that an operator can do something about. */
const ADVICE: Readonly<Record<string, string>> = {
  EACCES: "run as the user that owns the deployment",
  EPERM: "run as the user that owns the deployment",
  EROFS: "mount the disk so that it can be written to",
  ENOSPC: "make room on the disk",
  EDQUOT: "make room within the quota of this user",
  EMFILE: "raise the limit of open files",
};

/** The reason in one line, with what to do where that is known. */
export function describeError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const advice = ADVICE[errorCode(error)];
  return text.replaceAll(/\s*\n\s*/g, " ") + (advice === undefined ? "" : `; ${advice}`);
}

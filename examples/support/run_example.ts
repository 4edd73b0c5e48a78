/** Help, error messages and exit status, shared by all examples. */
import process from "node:process";
import { EventLogError } from "../../mod.ts";

/** The command line is invalid. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** @throws {UsageError} if an operand is left over. */
export function refuseRest([operand]: string[]): void {
  if (operand !== undefined) throw new UsageError(`unexpected argument ${operand}`);
}

/**
 * Runs an example, or prints its usage for `--help`. The exit status is 0 on success, 1 on failure
 * and 2 for a bad command line, after printing the usage.
 */
export async function runExample(
  usage: string,
  work: () => Promise<void>,
): Promise<void> {
  // The reader of standard output may close the pipe, as `head` does.
  process.stdout.on("error", (error: { code?: string }) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
  if (process.argv.slice(2).some((word) => word === "--help" || word === "-h")) {
    process.stdout.write(`${usage}\n`);
    return;
  }
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const isUsage = error instanceof UsageError ||
      "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
    process.stderr.write(`${describe(error)}\n${isUsage ? `\n${usage}\n` : ""}`);
    process.exitCode = isUsage ? 2 : 1;
  }
}

/** Formats an error, and names the service or SQLite if the error comes from there. */
function describe(error: Error): string {
  if (error instanceof EventLogError) return `service error: ${error.message}`;
  const isOfDatabase = "code" in error && String(error.code).startsWith("ERR_SQLITE");
  return isOfDatabase ? `SQLite error: ${error.message}` : error.message;
}

/** Shared by the examples: help, errors, exit status. */
import process from "node:process";
import { EventLogError } from "../../mod.ts";

/** The command line is invalid. */
export class UsageError extends Error {
  override name = "UsageError";
}

/**
 * Runs an example, or prints its usage for `--help`. Exit status 0; 1 on failure; 2, with the
 * usage, for a bad command line.
 */
export async function runExample(
  usage: string,
  work: () => Promise<void>,
): Promise<void> {
  // The reader has closed our standard output.
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

/** Says which end refused: the service, or what the example reads or writes besides. */
function describe(error: Error): string {
  if (error instanceof EventLogError) return `the service refused: ${error.message}`;
  const isOfDatabase = "code" in error && String(error.code).startsWith("ERR_SQLITE");
  return isOfDatabase ? `SQLite refused: ${error.message}` : error.message;
}

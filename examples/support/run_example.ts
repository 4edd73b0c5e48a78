/** Shared by the examples: usage, errors, exit status. */
import process from "node:process";

/** The command line is invalid. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** Runs an example. Exit status 0; 1 on failure; 2, with the usage, for a bad command line. */
export async function runExample(
  usage: string,
  work: () => Promise<void>,
): Promise<void> {
  // The reader has closed our standard output.
  process.stdout.on("error", (error: { code?: string }) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const isUsage = error instanceof UsageError ||
      "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
    process.stderr.write(`${error.message}\n${isUsage ? `\n${usage}\n` : ""}`);
    process.exitCode = isUsage ? 2 : 1;
  }
}

/** What every example does around its work: usage, errors, exit code. */
import process from "node:process";

/** The command line makes no sense. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** Runs an example. Exit code 0; 1 when it fails; 2, with the usage, for a bad command line. */
export async function runExample(
  usage: string,
  work: () => Promise<void>,
): Promise<void> {
  // Who reads our output has seen enough.
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

/** Refuses the path of a file that would get another name. */
import { absolutePath } from "../../src/commands/deployment.ts";
import { UsageError } from "./run_example.ts";

/** Returns the path. @throws {UsageError} if it is not UTF-8, which the runtimes can't pass on. */
export function checkedPath(path: string): string {
  try {
    absolutePath(path);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  return path;
}

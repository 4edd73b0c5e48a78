/** Runs an example as a child process under the runtime that runs the test. */
import { fileURLToPath } from "node:url";
import { type CliExit, type Spawned, spawnScript } from "../../../tools/support/program.ts";

/** Starts `examples/<name>.ts`. @param permissions used only under Deno. */
export function startExample(
  name: string,
  args: string[],
  permissions = ["--allow-all"],
  wrapper: string[] = [],
): Spawned {
  const script = fileURLToPath(new URL(`../../../examples/${name}.ts`, import.meta.url));
  return spawnScript(script, args, { permissions, wrapper });
}

/** Runs an example until it exits. */
export function runExample(name: string, args: string[]): Promise<CliExit> {
  return startExample(name, args).exited;
}

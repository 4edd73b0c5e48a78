/**
 * A directory for running a document's commands. It contains a copy of the repository and the
 * programs that the commands use. Local programs replace those from registries:
 *
 * - `service` and `./service` are `cli.ts` under the runtime that runs the test;
 * - `npx -y deno@…` and `npx -y node@…` are the installed runtimes, `npx service` is `service`;
 * - `npm` does nothing, because the dependencies are already installed.
 *
 * `/srv` and `/backup` map to subdirectories.
 */
import { chmod, cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { executableOf, runtimeArgs, THIS_RUNTIME } from "../../../tools/support/runtimes.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Entries at the root of the repository that are not copied. */
const NOT_COPIED = new Set([".git", "node_modules", "demo", "dist", "service"]);
const PERMISSIONS = ["--allow-read", "--allow-write", "--allow-sys", "--allow-net"];

/** Copies the repository and the programs into `folder`. */
export async function furnish(folder: string): Promise<void> {
  await cp(ROOT, folder, {
    recursive: true,
    filter: (path) => !NOT_COPIED.has(relative(ROOT, path)),
  });
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  for (const name of ["bin", "srv", "backup"]) await mkdir(join(folder, name));
  for (const [name, lines] of Object.entries(programs())) {
    await writeProgram(join(folder, "bin", name), lines);
  }
  await symlink(join("bin", "service"), join(folder, "service"));
}

/** The text of a document with its paths mapped to `folder`. */
export function relocated(text: string, folder: string): string {
  return text.replaceAll(/(?<![\w.])\/(?=(srv|backup)\b)/g, `${folder}/`);
}

function programs(): Record<string, string> {
  const cli = [executableOf(THIS_RUNTIME)!, ...runtimeArgs(THIS_RUNTIME, PERMISSIONS)];
  return {
    service: `exec ${cli.map(quoted).join(" ")} ${quoted(join(ROOT, "cli.ts"))} "$@"`,
    deno: `exec ${quoted(executableOf("deno") ?? "no-deno")} "$@"`,
    node: `exec ${quoted(executableOf("node") ?? "no-node")} "$@"`,
    npm: "exit 0",
    npx: `[ "$1" = -y ] && shift
case $1 in
  deno@* | node@* | service) program=\${1%%@*}; shift; exec "$program" "$@" ;;
  *) echo "npx: no stand-in for $1" >&2; exit 1 ;;
esac`,
  };
}

async function writeProgram(path: string, text: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${text}\n`);
  await chmod(path, 0o755);
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

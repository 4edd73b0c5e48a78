/** Determines the git revision of a build, and writes the module that contains it. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { writeText } from "./javascript.ts";

/**
 * The short revision of the tree at `root`, with `-dirty` appended if a tracked file was modified.
 * @returns an empty string if git is missing or `root` is not the root of a repository. Sources
 *   unpacked inside a different project therefore do not get that project's revision.
 */
export function revisionOf(root: string): string {
  const git = (...args: string[]) =>
    spawnSync("git", ["-C", root, ...args], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
  const prefix = git("rev-parse", "--show-prefix");
  if (prefix.status !== 0 || prefix.stdout.trim() !== "") return "";
  const revision = git("rev-parse", "--short", "HEAD");
  if (revision.status !== 0) return "";
  const changes = git("status", "--porcelain", "--untracked-files=no");
  return revision.stdout.trim() + (changes.stdout === "" ? "" : "-dirty");
}

/** The constants in `src/revision.ts`. */
export interface Build {
  /** The revision that `--version` appends to the version. */
  revision: string;
  /** Whether the build may run on a runtime that is too old. */
  isTestBuild: boolean;
}

/** Writes the replacement for `src/revision.ts` into a copy of the program. */
export function writeRevision(folder: string, { revision, isTestBuild }: Build): void {
  const text = `export const REVISION = ${JSON.stringify(revision)};\n` +
    `export const IS_TEST_BUILD = ${isTestBuild};\n`;
  writeText(join(folder, "src", "revision.js"), text);
}

/**
 * Converts the program to JavaScript. Types are replaced with spaces, so that every statement keeps
 * its line and column, and `.ts` specifiers become `.js`.
 */
import { transformSync } from "amaro";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A relative module specifier in an import, an export or a worker URL. */
const SPECIFIER = /(\b(?:from|import|import\(|new URL\()\s*")(\.{1,2}\/[^"\n]+)\.ts"/g;

/** Options for the type stripper that Node uses. */
const STRIP = { mode: "strip-only" } as const;

/** Returns the path of a module's JavaScript. */
export function scriptOf(path: string): string {
  return path.replace(/\.ts$/, ".js");
}

/** Rewrites relative module specifiers from `.ts` to `.js`. */
export function renameModules(text: string): string {
  return text.replace(SPECIFIER, '$1$2.js"');
}

/**
 * Writes the JavaScript of modules under `from` to the corresponding paths under `to`.
 * @param paths modules or directories of modules, relative to `from`.
 */
export function writeJavaScript(from: string, to: string, paths: readonly string[]): void {
  for (const path of paths.flatMap((path) => modulesIn(from, path))) {
    const { code } = transformSync(readFileSync(join(from, path), "utf8"), STRIP);
    writeText(join(to, scriptOf(path)), renameModules(code));
  }
}

/** Writes a file, creating parent directories. */
export function writeText(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Returns the modules at a path, which is relative to `root`: a module or a directory of them. */
export function modulesIn(root: string, path: string): string[] {
  if (path.endsWith(".ts")) return [path];
  return readdirSync(join(root, path), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(path, name));
}

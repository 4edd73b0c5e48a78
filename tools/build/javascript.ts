/**
 * The program as JavaScript: types are blanked out, so every statement stays at its line and
 * column, and what named a `.ts` file names the `.js` file made of it.
 */
import { transformSync } from "amaro";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A module's name, behind what can come before one: an import, an export, the URL of a thread. */
const SPECIFIER = /(\b(?:from|import|import\(|new URL\()\s*")(\.{1,2}\/[^"\n]+)\.ts"/g;

/** What Node does itself where it runs TypeScript. */
const STRIP = { mode: "strip-only" } as const;

/** The JavaScript that is made of a module. */
export function scriptOf(path: string): string {
  return path.replace(/\.ts$/, ".js");
}

/** Makes modules, or declarations, of files beside them name `.js` in place of `.ts`. */
export function renameModules(text: string): string {
  return text.replace(SPECIFIER, '$1$2.js"');
}

/**
 * Writes the JavaScript of modules under `from` to the same places under `to`.
 * @param paths Modules, and folders with modules.
 */
export function writeJavaScript(from: string, to: string, paths: readonly string[]): void {
  for (const path of paths.flatMap((path) => modulesIn(from, path))) {
    const { code } = transformSync(readFileSync(join(from, path), "utf8"), STRIP);
    writeText(join(to, scriptOf(path)), renameModules(code));
  }
}

/** Writes a file, and the folders that it is in. */
export function writeText(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function modulesIn(root: string, path: string): string[] {
  if (path.endsWith(".ts")) return [path];
  return readdirSync(join(root, path), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(path, name));
}

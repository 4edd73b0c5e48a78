/**
 * Builds what `npm pack` packs, in `dist/npm`: JavaScript, because Node strips no types inside
 * `node_modules`, and declarations of the library. Needs Node >= 22.18 and the development
 * dependencies; `npm pack` runs it.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { renameModules, scriptOf, writeJavaScript, writeText } from "./build/javascript.ts";
import { revisionModule, revisionOf } from "./build/revision.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const OUTPUT = join(ROOT, "dist", "npm");
const PROGRAM = "cli.ts";
/** What can be imported from the package; these have declarations. */
const LIBRARY = ["mod.ts", "event.ts"];

const DECLARATION_OPTIONS = [
  ...["--declaration", "--emitDeclarationOnly", "--stripInternal"],
  ...["--target", "es2024", "--lib", "es2024,dom,dom.iterable", "--types", "node"],
  ...["--module", "nodenext", "--allowImportingTsExtensions"],
  ...["--strict", "--exactOptionalPropertyTypes", "--rootDir", ROOT, "--outDir", OUTPUT],
];

/** @throws {Error} when the compiler finds a fault. */
function writeDeclarations(): void {
  const require = createRequire(import.meta.url);
  const compiler = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");
  const { status } = spawnSync(process.execPath, [compiler, ...DECLARATION_OPTIONS, ...LIBRARY], {
    cwd: ROOT,
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("the declarations of the library could not be made");
  for (const path of globSync("**/*.d.ts", { cwd: OUTPUT })) {
    const file = join(OUTPUT, path);
    writeText(file, renameModules(readFileSync(file, "utf8")));
  }
}

/** What npm links as a command is run by the system, which looks for the name of the runtime. */
function makeExecutable(path: string): void {
  writeText(path, `#!/usr/bin/env node\n${readFileSync(path, "utf8")}`);
}

rmSync(OUTPUT, { recursive: true, force: true });
writeJavaScript(ROOT, OUTPUT, [PROGRAM, ...LIBRARY, "src"]);
const { path, text } = revisionModule(revisionOf(ROOT));
writeText(join(OUTPUT, path), text);
makeExecutable(join(OUTPUT, scriptOf(PROGRAM)));
writeDeclarations();

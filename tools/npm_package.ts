/**
 * Builds the contents of an npm package: JavaScript (Node does not strip types inside
 * `node_modules`) and, in the service's, declarations for the library, and the examples. `npm pack`
 * runs this script, which needs Node >= 22.18 and the development dependencies.
 *
 *     node tools/npm_package.ts [service | mirror]
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, globSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { renameModules, scriptOf, writeJavaScript, writeText } from "./build/javascript.ts";
import { programNamed, PROGRAMS } from "./build/programs.ts";
import { revisionOf, writeRevision } from "./build/revision.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PROGRAM = programNamed(process.argv[2] ?? "service");
const isService = PROGRAM === PROGRAMS.service;
const OUTPUT = join(ROOT, isService ? "dist/npm" : "mirror/dist");
/** Modules that users can import, for which declarations are generated. */
const LIBRARY = ["mod.ts", "event.ts"];

const VIEWER = ["server.ts", "minute_counts.ts", "page"].map((name) => `examples/viewer/${name}`);
/** Files in the viewer's page that are not modules. */
const PAGE = ["index.html", "viewer.css"].map((name) => `examples/viewer/page/${name}`);

const DECLARATION_OPTIONS = [
  ...["--declaration", "--emitDeclarationOnly", "--stripInternal"],
  ...["--target", "es2024", "--lib", "es2024,dom,dom.iterable", "--types", "node"],
  ...["--module", "nodenext", "--allowImportingTsExtensions"],
  ...["--strict", "--exactOptionalPropertyTypes", "--rootDir", ROOT, "--outDir", OUTPUT],
];

/** @throws {Error} if the compiler reports an error. */
function writeDeclarations(): void {
  const require = createRequire(import.meta.url);
  const compiler = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");
  const { status } = spawnSync(process.execPath, [compiler, ...DECLARATION_OPTIONS, ...LIBRARY], {
    cwd: ROOT,
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("cannot generate the library's declarations");
  for (const path of globSync("**/*.d.ts", { cwd: OUTPUT })) {
    const file = join(OUTPUT, path);
    writeText(file, renameModules(readFileSync(file, "utf8")));
  }
}

/** Adds a shebang line to a command, since npm links it as an executable. */
function makeExecutable(path: string): void {
  writeText(path, `#!/usr/bin/env node\n${readFileSync(path, "utf8")}`);
}

/** Adds the library's declarations and the examples to the service's package. */
function writeLibrary(): void {
  const examples = globSync("examples/*.ts", { cwd: ROOT });
  writeJavaScript(ROOT, OUTPUT, [...LIBRARY, ...examples, ...VIEWER, "examples/support"]);
  for (const path of PAGE) {
    const text = readFileSync(join(ROOT, path), "utf8");
    writeText(join(OUTPUT, path), text.replaceAll('.ts"', '.js"'));
  }
  writeDeclarations();
}

rmSync(OUTPUT, { recursive: true, force: true });
writeJavaScript(ROOT, OUTPUT, PROGRAM.sources);
writeRevision(OUTPUT, { revision: revisionOf(ROOT), isTestBuild: false });
makeExecutable(join(OUTPUT, scriptOf(PROGRAM.entry)));
if (isService) writeLibrary();
else copyFileSync(join(ROOT, "LICENSE"), join(OUTPUT, "LICENSE"));

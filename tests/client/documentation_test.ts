/** Runs the examples in doc comments and documentation against a service. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { fencesOf } from "../docs/support/fences.ts";
import { spawnCommand } from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";
import { withServing } from "../support/deployment.ts";

const ROOT = new URL("../../", import.meta.url);
const DOCUMENTED = ["mod.ts", "event.ts", "src/client/", "docs/client.md", "README.md"];

/** Omits `noUnusedLocals`, because the test adds imports that an example may not use. */
const CONFIG = {
  imports: { "@ground/service": new URL("mod.ts", ROOT).href },
  compilerOptions: { strict: true, exactOptionalPropertyTypes: true },
};

const deno = executableOf("deno");

test("every example in the client's doc comments type-checks and runs", {
  skip: deno === null ? absenceOf("deno") : false,
}, async () => {
  await withServing(async ({ folder }) => {
    const config = join(folder, "deno.json");
    await writeFile(config, JSON.stringify(CONFIG));
    const paths = DOCUMENTED.map((path) => fileURLToPath(new URL(path, ROOT)));
    const options = ["--quiet", "--no-lock", "--config", config];
    const access = ["--allow-read", "--allow-write", "--allow-sys", "--allow-net"];
    const args = ["test", "--doc", ...options, ...access, ...paths];
    assert.match(await outputOf(deno!, args, folder), /\d\d passed \| 0 failed/);
  });
});

const node = executableOf("node");

/** Examples in the documentation are complete scripts. */
test("every example in the documents runs on Node, importing the package by name", {
  skip: node === null ? absenceOf("node") : false,
}, async () => {
  await withServing(async ({ folder }) => {
    const packageFolder = join(folder, "node_modules", "@ground", "service");
    await mkdir(packageFolder, { recursive: true });
    const library = JSON.stringify(new URL("mod.ts", ROOT));
    await writeFile(join(packageFolder, "index.js"), `export * from ${library};\n`);
    await writeFile(join(packageFolder, "package.json"), '{"type":"module"}');
    for (const path of DOCUMENTED.filter((path) => path.endsWith(".md"))) {
      const examples = fencesOf(readFileSync(new URL(path, ROOT), "utf8"))
        .filter(({ language }) => language === "ts");
      assert.ok(examples.length > 0, path);
      for (const { line, text } of examples) {
        const script = join(folder, `line_${line}.mts`);
        await writeFile(script, text);
        await outputOf(node!, [script], folder);
      }
    }
  });
});

/**
 * Runs a program that must succeed and returns its output. Examples use a socket path relative to
 * their working directory.
 */
async function outputOf(program: string, args: string[], folder: string): Promise<string> {
  const wrapper = ["env", "-i", `HOME=${folder}`, "NO_COLOR=1"];
  const options = { cwd: folder, wrapper, timeoutMs: null };
  const { code, stdout, stderr } = await spawnCommand([program, ...args], options).exited;
  assert.equal(code, 0, `${args.at(-1)}: ${stdout}${stderr}`);
  return stdout;
}

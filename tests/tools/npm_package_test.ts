/**
 * The package that npm packs, installed in an empty directory. Its command runs without this
 * repository and without Deno, and its types compile. npm downloads dependencies not in its cache.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { promisify } from "node:util";
import {
  OWN_CHECKOUT,
  runCli,
  signalChild,
  spawnCommand,
  startServe,
  untilPrinted,
  withFolder,
} from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";

const PACKAGES = join(OWN_CHECKOUT, "node_modules");
const COMPILER = [
  ...[join(PACKAGES, "typescript/bin/tsc"), "--noEmit", "--strict", "--exactOptionalPropertyTypes"],
  ...["--module", "nodenext", "--target", "es2024", "--types", "node"],
  ...["--typeRoots", join(PACKAGES, "@types")],
];

/** A connector and a consumer, as users write them. */
const CONSUMER = `
import { canonicalize, type CommittedEvent } from "@ground/service/event";
import { EventLogClient, type EventLogError, unixFetch } from "@ground/service";

const client: EventLogClient = new EventLogClient(unixFetch(process.argv[2]!));
const events = [{ stream: "orders", record_key: "1", kind: "upserted", payload: { b: 1, a: [2] } }];
const receipt = await client.append({ source: "shop", batchId: "b", events });
const known: "committed" | "duplicate" = receipt.status;
const found: CommittedEvent[] = [];
for await (const event of client.replay({ source: "shop", verify: true })) found.push(event);
const refused = await client.append({ source: "Shop", batchId: "b", events })
  .catch((error: EventLogError) => error.code);
console.log(JSON.stringify([known, found.map(({ payload }) => canonicalize(payload)), refused]));
`;

const node = executableOf("node");
const hasNpm = spawnSync("npm", ["--version"]).status === 0;

test("the installed package is complete, serves a typed program and the viewer, and seals", {
  skip: node === null ? absenceOf("node") : hasNpm ? false : "npm not found",
}, () =>
  withFolder(async (folder) => {
    // The Node that runs this test comes first.
    const PATH = `${dirname(node!)}:${process.env.PATH}`;
    const run = async (program: string, ...args: string[]) => {
      const options = { cwd: folder, env: { ...process.env, PATH } };
      return (await promisify(execFile)(program, args, options)).stdout;
    };
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    const where = ["--pack-destination", folder, "--silent", "--foreground-scripts=false"];
    await run("npm", "pack", ...where, OWN_CHECKOUT);
    const [tarball] = globSync("*.tgz", { cwd: folder });
    await run("npm", "install", "--prefer-offline", "--no-audit", "--no-fund", `./${tarball}`);
    const installed = join(folder, "node_modules/@ground/service");
    assertComplete(installed);

    const executable = join(folder, "node_modules/.bin/service");
    const command = { executable, wrapper: ["env", `PATH=${PATH}`] };
    const dir = join(folder, "deployment");
    assert.equal((await runCli(["init", dir], command)).code, 0);
    await writeFile(join(folder, "consumer.ts"), CONSUMER);
    await run(node!, ...COMPILER, "consumer.ts");
    const serving = await startServe(dir, command);
    const socketPath = join(dir, "data/ground.sock");
    const told = JSON.parse(await run(node!, "consumer.ts", socketPath));
    assert.deepEqual(told, ["committed", ['{"a":[2],"b":1}'], "invalid_batch"]);
    await assertViews(join(installed, "dist/npm/examples/viewer/server.js"), socketPath);
    assert.equal((await serving.stop()).code, 0);
    for (const args of [["seal"], ["verify", "--chain"]]) {
      const config = ["--config", join(dir, "service.toml")];
      const { code, stdout, stderr } = await runCli([...config, ...args], command);
      assert.equal(code, 0, stdout + stderr);
    }
  }));

/** Asserts that the package contains JavaScript, declarations and documents, and what they need. */
function assertComplete(installed: string): void {
  const isOther = (path: string) => !/^dist\/npm\/([\w./]+)\.(d\.ts|js|html|css)$/.test(path);
  const others = globSync("**/*.*", { cwd: installed }).filter(isOther)
    .map((path) => path.replace(/^(docs|examples)\/.*/, "$1"));
  assert.deepEqual([...new Set(others)].sort(), [
    ...["CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "bench/README.md"],
    ...["docs", "examples", "mirror/README.md", "package.json", "tests/contract/README.md"],
    ...["tests/faults/catalogue.md", "tools/check_setup.cjs"],
  ]);
  const links = /\]\(([\w./-]+)[)#]/g;
  const modules = /(?:\bfrom |\bimport\(|new URL\()"(\.{1,2}\/[^"]+\.js)"/g;
  const documents = ["README.md", "docs/README.md", "examples/README.md"];
  for (const from of [...documents, ...globSync("dist/npm/**/*.js", { cwd: installed })]) {
    const text = readFileSync(join(installed, from), "utf8");
    for (const [, to] of text.matchAll(from.endsWith(".md") ? links : modules)) {
      assert.ok(existsSync(join(installed, dirname(from), to!)), `${from}: no ${to}`);
    }
  }
}

/** Asserts that the viewer serves its page and the modules that it imports. */
async function assertViews(script: string, socketPath: string): Promise<void> {
  const viewer = spawnCommand([node!, script, socketPath, "--port", "0"], {});
  await untilPrinted(viewer, ({ stdout }) => stdout.includes("\n"));
  for (const path of ["/", "/viewer.css", "/examples/viewer/page/main.js", "/event.js"]) {
    const response = await fetch(new URL(path, viewer.output.stdout.trim()));
    assert.equal(response.status, 200, path);
    await response.arrayBuffer();
  }
  signalChild(viewer.child, "SIGTERM");
  await viewer.exited;
}

/**
 * The package that npm packs, installed in an empty directory. Its command runs without this
 * repository and without Deno, and its types compile. npm downloads dependencies not in its cache.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  type CliOptions,
  runCli,
  spawnCommand,
  startServe,
  untilPrinted,
} from "../../tools/support/program.ts";
import { withServing } from "../support/deployment.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const NODE_TYPES = join(ROOT, "node_modules", "@types");
const COMPILER = join(ROOT, "node_modules", "typescript", "bin", "tsc");
const COMPILER_OPTIONS = [
  ...["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--module", "nodenext"],
  ...["--target", "es2024", "--types", "node", "--typeRoots", NODE_TYPES],
];

/** A connector and a consumer, as users write them. */
const CONSUMER = `
import { canonicalize, type CommittedEvent } from "@ground/service/event";
import { EventLogClient, type EventLogError, unixFetch, verifyEvent } from "@ground/service";

const client: EventLogClient = new EventLogClient(unixFetch(process.argv[2]!));
const events = [{ stream: "orders", record_key: "1", kind: "upserted", payload: { b: 1, a: [2] } }];
const receipt = await client.append({ source: "shop", batchId: "b", events });
const known: "committed" | "duplicate" = receipt.status;
const found: CommittedEvent[] = [];
for await (const event of client.replay({ source: "shop" })) {
  const { contentHash, eventHash } = await verifyEvent(event);
  if (contentHash && eventHash) found.push(event);
}
const refused = await client.append({ source: "Shop", batchId: "b", events })
  .catch((error: EventLogError) => error.code);
console.log(JSON.stringify([known, found.map(({ payload }) => canonicalize(payload)), refused]));
`;

const node = executableOf("node");
const hasNpm = spawnSync("npm", ["--version"]).status === 0;
const skip = node === null ? absenceOf("node") : hasNpm ? false : "npm not found";

/** The installation directory, and the package directory in it. */
let folder: string;
let installed: string;
/** Runs the package's command under the Node that runs this test. */
let command: CliOptions;

/** Runs a program. The Node that runs this test comes first in PATH. */
async function run(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { cwd: folder, env: environment() });
  return stdout;
}

function environment() {
  return { ...process.env, PATH: `${dirname(node!)}:${process.env.PATH}` };
}

before(async () => {
  folder = await mkdtemp(join(await realpath(tmpdir()), "el-"));
  if (skip !== false) return;
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  const where = ["--pack-destination", folder, "--silent", "--foreground-scripts=false"];
  await run("npm", "pack", ...where, ROOT);
  const [tarball] = globSync("*.tgz", { cwd: folder });
  await run("npm", "install", "--prefer-offline", "--no-audit", "--no-fund", `./${tarball}`);
  installed = join(folder, "node_modules", "@ground", "service");
  const path = `PATH=${environment().PATH}`;
  command = {
    executable: join(folder, "node_modules", ".bin", "service"),
    wrapper: ["env", path],
  };
});

after(() => rm(folder, { recursive: true, force: true }));

test("the package contains the program's JavaScript, declarations and documents", { skip }, () => {
  const files = globSync("**/*.*", { cwd: installed });
  const others = files.filter((path) => !/^dist\/npm\/([\w./]+)\.(d\.ts|js|html|css)$/.test(path))
    .map((path) => path.replace(/^(docs|examples)\/.*/, "$1"));
  assert.deepEqual([...new Set(others)].sort(), [
    ...["CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "bench/README.md"],
    ...[
      "docs",
      "examples",
      "mirror/README.md",
      "package.json",
      "tests/contract/README.md",
      "tests/faults/catalogue.md",
      "tools/check_setup.cjs",
    ],
  ]);
  for (const from of ["README.md", "docs/README.md", "examples/README.md"]) {
    const text = readFileSync(join(installed, from), "utf8");
    for (const [, to] of text.matchAll(/\]\(([\w./-]+)[)#]/g)) {
      assert.ok(existsSync(join(installed, dirname(from), to!)), `${from}: no ${to}`);
    }
  }
  assert.ok(existsSync(join(installed, "LICENSE")));
  const { version, dependencies } = JSON.parse(
    readFileSync(join(installed, "package.json"), "utf8"),
  );
  for (const [name, range] of Object.entries(dependencies)) {
    const path = join(folder, "node_modules", name, "package.json");
    assert.equal(JSON.parse(readFileSync(path, "utf8")).version, range);
  }
  assert.match(version, /^\d+\.\d+\.\d+$/);
  for (const path of globSync("dist/npm/src/**/*.js", { cwd: installed })) {
    const text = readFileSync(join(installed, path), "utf8");
    for (const [, name] of text.matchAll(/new URL\("\.\/([^"]+)", import\.meta\.url\)/g)) {
      assert.ok(existsSync(join(installed, path, "..", name!)), `${path}: no worker ${name}`);
    }
  }
});

test(
  "the installed package initializes, serves a typed program, seals and verifies",
  { skip },
  async () => {
    const dir = join(folder, "deployment");
    await mkdir(dir);
    const config = ["--config", join(dir, "service.toml")];
    assert.equal((await runCli(["init", dir], command)).code, 0);
    await writeFile(join(folder, "consumer.ts"), CONSUMER);
    await run(node!, COMPILER, ...COMPILER_OPTIONS, "consumer.ts");

    const serving = await startServe(dir, command);
    try {
      const told = await run(node!, "consumer.ts", join(dir, "data", "ground.sock"));
      assert.deepEqual(JSON.parse(told), ["committed", ['{"a":[2],"b":1}'], "invalid_batch"]);
    } finally {
      assert.equal((await serving.stop()).code, 0);
    }
    const sealed = await runCli([...config, "seal"], command);
    assert.equal(sealed.code, 0, sealed.stderr);
    const verified = await runCli([...config, "verify", "--chain"], command);
    assert.equal(verified.code, 0, verified.stderr);
    const { segments_checked, events_checked } = JSON.parse(verified.stdout);
    assert.deepEqual([segments_checked, events_checked], [1, 1]);
  },
);

test(
  "npm's scripts say that they need a clone, and npm test the Node that it needs",
  { skip },
  () => {
    for (const name of ["start", "test", "soak", "selftest"]) {
      const env = { ...environment(), NODE_OPTIONS: "--no-experimental-strip-types" };
      const options = { cwd: installed, env, encoding: "utf8" } as const;
      const { status, stderr } = spawnSync("npm", ["run", "--silent", name], options);
      assert.equal(status, 1);
      assert.match(
        stderr,
        /^Node 22\.18 or later is needed, .*\nnpm's scripts need a clone: .*\n$/,
      );
    }
  },
);

test("the viewer of the installed package serves its page and the modules it imports", {
  skip,
}, () =>
  withServing(async ({ socketPath }) => {
    const script = join(installed, "dist", "npm", "examples", "viewer", "server.js");
    const viewer = spawnCommand([node!, script, socketPath, "--port", "0"], {});
    try {
      await untilPrinted(viewer, ({ stdout }) => stdout.includes("\n"));
      const read = async (path: string) => {
        const response = await fetch(new URL(path, viewer.output.stdout.trim()));
        assert.equal(response.status, 200, path);
        return await response.text();
      };
      await read("/viewer.css");
      const paths = new Set([...(await read("/")).matchAll(/src="([^"]+)"/g)].map(([, to]) => to!));
      for (const path of paths) {
        for (const [, to] of (await read(path)).matchAll(/\bfrom "(\.[^"]+)"/g)) {
          paths.add(new URL(to!, `http://localhost${path}`).pathname);
        }
      }
      assert.ok(paths.size > 10 && paths.has("/event.js"), [...paths].join());
    } finally {
      viewer.child.kill();
      await viewer.exited;
    }
  }));

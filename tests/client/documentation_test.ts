/** The examples in comments and in docs/client.md are run, against a service. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { absenceOf, executableOf } from "../support/runtimes.ts";
import { withDeployment } from "./support/deployment.ts";

const ROOT = new URL("../../", import.meta.url);
const DOCUMENTED = ["mod.ts", "event.ts", "src/client/", "docs/client.md"];

/** The tree's own forbids unused names, and the imports that are put before an example are such. */
const CONFIG = {
  imports: { "@ground/service": new URL("mod.ts", ROOT).href },
  compilerOptions: { strict: true, exactOptionalPropertyTypes: true },
};

const deno = executableOf("deno");

test("every example of the client's documentation type-checks and runs", {
  skip: deno === null ? absenceOf("deno") : false,
}, async () => {
  await withDeployment(async ({ folder }) => {
    const config = join(folder, "deno.json");
    await writeFile(config, JSON.stringify(CONFIG));
    const paths = DOCUMENTED.map((path) => fileURLToPath(new URL(path, ROOT)));
    const options = ["--quiet", "--no-lock", "--config", config];
    const access = ["--allow-read", "--allow-write", "--allow-net"];
    // The examples name the socket relative to the folder they are run in.
    const child = spawn(deno!, ["test", "--doc", ...options, ...access, ...paths], {
      cwd: folder,
      env: { PATH: "", HOME: folder, NO_COLOR: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => output += text);
    }
    const code = await new Promise((resolve) => child.once("close", resolve));
    assert.equal(code, 0, output);
    assert.match(output, /\d\d passed \| 0 failed/);
  });
});

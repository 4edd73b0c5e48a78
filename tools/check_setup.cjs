/**
 * Run before npm's scripts: says what is missing, where Node would print a stack trace. This file is
 * JavaScript, since an old Node runs no TypeScript.
 *
 *     node tools/check_setup.cjs [PACKAGE...]
 */
const { existsSync } = require("node:fs");

const NODE = "node@24.21.0";
const isClone = existsSync(`${__dirname}/start.ts`);
const faults = [];
if (process.features.typescript !== "strip") {
  const { version } = process;
  faults.push(
    `Node 22.18 or later is needed, this is ${version}: put it before npm, npx -y -p ${NODE} npm ...`,
  );
}
if (!isClone) faults.push("npm's scripts need a clone: in a package, the program is npx service");
for (const name of isClone ? process.argv.slice(2) : []) {
  try {
    require.resolve(`${name}/package.json`);
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND") {
      faults.push(`${name} is missing: run npm ci, without --omit=dev`);
    }
  }
}
for (const fault of faults) process.stderr.write(`${fault}\n`);
if (faults.length > 0) process.exitCode = 1;

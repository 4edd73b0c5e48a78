/**
 * Runs the commands in the documents in a copy of the repository, and compares their output with
 * the documents. `support/fences.ts` describes the tags of fences.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { withFolder } from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";
import { type Fence, fencesOf } from "./support/fences.ts";
import { isAlike, missingLine } from "./support/loose_output.ts";
import { furnish, relocated } from "./support/reader_folder.ts";
import { runFences } from "./support/shell_session.ts";

const ROOT = new URL("../../", import.meta.url);
const DOCUMENTS = [
  "README.md",
  ...readdirSync(new URL("docs/", ROOT)).filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`).sort(),
];

/** Maximum number of fences that are not run. A higher limit would leave too much untested. */
const NO_RUN_MAX = 16;

const TAGS: Record<string, string[]> = {
  sh: ["", "background", "follow", "no-run"],
  json: ["", "output"],
  text: ["", "output"],
};

const fences = new Map(
  DOCUMENTS.map((path) => [path, fencesOf(readFileSync(new URL(path, ROOT), "utf8"))]),
);

test("every fence has a language and a valid tag", () => {
  for (const [path, list] of fences) {
    for (const { language, tag, line } of list) {
      assert.notEqual(language, "", `${path}:${line}: no language`);
      assert.ok((TAGS[language] ?? [""]).includes(tag), `${path}:${line}: ${language} ${tag}`);
    }
  }
});

test("fences that are not run are few and give a reason", (context) => {
  const skipped = [...fences].flatMap(([path, list]) =>
    list.filter(({ tag }) => tag === "no-run").map((fence) => ({ path, ...fence }))
  );
  for (const { path, line, reason } of skipped) {
    assert.ok(reason !== null, `${path}:${line}: no comment gives the reason for no-run`);
    context.diagnostic(`not run: ${path}:${line}: ${reason}`);
  }
  assert.ok(skipped.length <= NO_RUN_MAX, `${skipped.length} fences are not run`);
});

/** The reason why the commands cannot run here, or false. */
function obstacle(): string | false {
  for (const name of ["deno", "node"] as const) {
    if (executableOf(name) === null) return absenceOf(name);
  }
  const missing = ["bash", "curl"].find((name) => spawnSync(name, ["--version"]).status !== 0);
  return missing === undefined ? false : `${missing} is not installed`;
}

const isRun = ({ language, tag }: Fence) => language === "sh" && tag !== "no-run";

for (const [path, list] of fences) {
  if (!list.some(isRun)) continue;
  test(
    `the commands in ${path} work and print the output that it shows`,
    { skip: obstacle() },
    () =>
      withFolder(async (folder) => {
        await furnish(folder);
        const placed = list.map((fence) => ({ ...fence, text: relocated(fence.text, folder) }));
        const { outputs, failed, stderr } = await runFences(placed.filter(isRun), folder);
        if (failed !== null) {
          const said = outputs.get(failed) ?? "";
          assert.fail(`${path}:${failed.line} fails:\n${failed.text}\n--\n${said}${stderr}`);
        }
        let output = "";
        for (const fence of placed) {
          if (isRun(fence)) output = outputs.get(fence)!;
          if (fence.tag === "output") compare(path, fence, output);
        }
      }),
  );
}

function compare(path: string, { language, text, line }: Fence, output: string): void {
  const at = `${path}:${line}: the output is\n${output}`;
  if (language === "json") return assert.ok(isAlike(text, output), at);
  const missing = missingLine(text, output);
  assert.equal(missing, null, `${at}\nwithout: ${missing}`);
}

/**
 * Runs the commands in the documentation in a copy of the repository, and compares their output
 * with the documentation. `support/fences.ts` describes the tags on code blocks.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { withFolder } from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";
import { type Fence, fencesOf } from "./support/fences.ts";
import { missingLine } from "./support/loose_output.ts";
import { furnish, relocated } from "./support/reader_folder.ts";
import { runFences } from "./support/shell_session.ts";

const ROOT = new URL("../../", import.meta.url);
const DOCUMENTS = [
  "README.md",
  ...readdirSync(new URL("docs/", ROOT)).filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`).sort(),
];

/** Maximum number of code blocks that are not run. A higher limit would leave too much untested. */
const NO_RUN_MAX = 16;

const TAGS: Record<string, string[]> = {
  sh: ["", "background", "follow", "no-run"],
  text: ["", "output"],
};

const fences = new Map(
  DOCUMENTS.map((path) => [path, fencesOf(readFileSync(new URL(path, ROOT), "utf8"))]),
);

test("every code block has a language and a valid tag; few are not run, and for a reason", () => {
  const skipped: string[] = [];
  for (const [path, list] of fences) {
    for (const { language, tag, line, reason } of list) {
      assert.notEqual(language, "", `${path}:${line}: no language`);
      assert.ok((TAGS[language] ?? [""]).includes(tag), `${path}:${line}: ${language} ${tag}`);
      if (tag !== "no-run") continue;
      assert.ok(reason !== null, `${path}:${line}: no comment gives the reason for no-run`);
      skipped.push(`${path}:${line}: ${reason}`);
    }
  }
  assert.ok(skipped.length <= NO_RUN_MAX, `not run:\n${skipped.join("\n")}`);
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
    () => runDocument(path, list),
  );
}

const OPERATIONS = "docs/operations.md";
/** Moves the socket out of `data/` and sets a token. */
const CONFIGURE = `
mkdir -p /srv/elsewhere/data
sed -i 's|"data/ground.sock"|"../elsewhere/data/ground.sock"|; s|^token = .*|token = "secret"|' \\
  /srv/log/service.toml
echo 'Authorization: Bearer secret' > /srv/header`;

test(
  `the commands in ${OPERATIONS} work with another socket, a token and a sealed log, and tidy up`,
  { skip: obstacle() },
  () => {
    const list = fences.get(OPERATIONS)!.filter(isRun).map((fence) => {
      const text = fence.text.replaceAll(
        "--unix-socket /srv/log/data/ground.sock",
        "--header @/srv/header --unix-socket /srv/elsewhere/data/ground.sock",
      );
      return { ...fence, text: text.replace("service init /srv/log", `$&${CONFIGURE}`) };
    });
    const having = (command: string) => list.findIndex(({ text }) => text.includes(command));
    const first = list[having('"batch_id": "first"')]!;
    const second = { ...first, text: first.text.replace('"first"', '"second"') };
    // The log has grown since the backup.
    list.splice(having("/srv/drill"), 0, second);
    const at = having("service.toml seal");
    list.splice(at, 0, { ...list[at]! });
    list.unshift({ ...first, text: "ls > /srv/listed" });
    list.push({ ...first, text: "ls | diff /srv/listed - && [[ ! -e /srv/drill ]]" });
    return runDocument(OPERATIONS, list);
  },
);

/** Runs the commands in a document, and compares their output. */
function runDocument(path: string, list: Fence[]): Promise<void> {
  return withFolder(async (folder) => {
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
  });
}

function compare(path: string, { text, line }: Fence, output: string): void {
  const at = `${path}:${line}: the output is\n${output}`;
  const missing = missingLine(text, output);
  assert.equal(missing, null, `${at}\nwithout: ${missing}`);
}

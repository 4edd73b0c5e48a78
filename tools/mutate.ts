/**
 * Mutation testing. Applies one deliberate bug at a time (`mutations/`) to a copy of this tree,
 * and expects the tests to fail. Exits with status 1 if a bug survives. Arguments select the
 * mutations whose names or tests contain them. The tests must pass on the unmodified copy.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import { mutated, type Mutation, readMutations } from "./mutations.ts";
import { OWN_CHECKOUT } from "./support/program.ts";

const SKIPPED = new Set([".git", "node_modules", "demo"]);
const TEST_TIMEOUT_MS = 600_000;
/** Fixed seed and moderate sizes for randomized tests. */
const ENVIRONMENT = { SEED: "1", HISTORIES: "4", FAULT_POINTS: "0.02" };

/** Runs a test file in a source tree. @returns whether it passed. */
function passes(folder: string, test: string): boolean {
  // After a first failure, another test may wait for what the bug prevents until the timeout.
  const args = ["test", "--allow-all", "--no-check", "--fail-fast", test];
  const { status } = spawnSync(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, ...ENVIRONMENT },
    stdio: "ignore",
    timeout: TEST_TIMEOUT_MS,
  });
  return status === 0;
}

/** Tests one mutation. @returns the test that detected it; null if none did. */
function tryMutation(folder: string, mutation: Mutation): string | null {
  const read = (file: string) => readFileSync(join(folder, file), "utf8");
  const after = mutated(mutation, read);
  const before = [...after.keys()].map((file) => [file, read(file)] as const);
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text);
  try {
    for (const [file, text] of after) write(file, text);
    return mutation.tests.find((test) => !passes(folder, test)) ?? null;
  } finally {
    for (const [file, text] of before) write(file, text);
  }
}

function assertPassing(folder: string, mutations: readonly Mutation[]): void {
  for (const test of new Set(mutations.flatMap(({ tests }) => tests))) {
    if (!passes(folder, test)) throw new Error(`${test} fails on the unmodified tree`);
  }
}

const words = process.argv.slice(2);
const chosen = readMutations(OWN_CHECKOUT).filter(({ name, tests }) =>
  words.every((word) => [name, ...tests].some((text) => text.includes(word)))
);
const folder = mkdtempSync(join(tmpdir(), "mutate-"));
try {
  const filter = (path: string) => !SKIPPED.has(basename(path));
  cpSync(OWN_CHECKOUT, folder, { recursive: true, filter });
  symlinkSync(join(OWN_CHECKOUT, "node_modules"), join(folder, "node_modules"));
  assertPassing(folder, chosen);
  const survivors = chosen.filter((mutation) => {
    const test = tryMutation(folder, mutation);
    process.stdout.write(
      `${mutation.name}: ${test === null ? "SURVIVED" : `detected by ${test}`}\n`,
    );
    return test === null;
  });
  process.stdout.write(
    `${chosen.length - survivors.length} of ${chosen.length} mutations detected\n`,
  );
  process.exitCode = survivors.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true });
}

/**
 * Deliberate bugs, each with the tests that must detect it (see `mutate.ts`). The files in
 * `tools/mutations/` list them. A bug has a title, tests, and one or more edits, each of which
 * consists of a file in `src/` and of whole lines, as in a diff:
 *
 *     # recovery does not sync recovered commits
 *     tests/faults/crash_sequences_test.ts
 *     src/log/recovery.ts
 *        await file.truncate(endBytes);
 *     -  await file.sync();
 *
 * The lines that an edit removes or keeps must occur exactly once in the file, one after the other.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = "tools/mutations";

/** A replacement of whole lines in a file. */
interface Edit {
  file: string;
  find: string;
  replace: string;
}

export interface Mutation {
  /** Describes the bug. */
  name: string;
  /** The file and line that list it, for errors. */
  place: string;
  edits: Edit[];
  /** Test files, run in this order until one fails. */
  tests: string[];
}

/** Returns the mutations that a source tree lists. @throws {Error} if a list is malformed. */
export function readMutations(root: string): Mutation[] {
  return readdirSync(join(root, FOLDER)).sort().flatMap((name) => {
    const path = join(FOLDER, name);
    return parseMutations(path, readFileSync(join(root, path), "utf8"));
  });
}

/** Parses a list of mutations. @throws {Error} naming the line that is malformed. */
function parseMutations(path: string, text: string): Mutation[] {
  const mutations: Mutation[] = [];
  text.split("\n").forEach((line, index) => {
    const place = `${path}:${index + 1}`;
    const mutation = mutations.at(-1);
    const edit = mutation?.edits.at(-1);
    if (line.startsWith("# ")) {
      mutations.push({ name: line.slice(2), place, edits: [], tests: [] });
    } else if (mutation !== undefined && /^tests\/\S+_test\.ts$/.test(line)) {
      mutation.tests.push(line);
    } else if (mutation !== undefined && /^src\/\S+\.ts$/.test(line)) {
      mutation.edits.push({ file: line, find: "", replace: "" });
    } else if (edit !== undefined && /^[-+ ]/.test(line)) {
      if (line[0] !== "+") edit.find += `${line.slice(1)}\n`;
      if (line[0] !== "-") edit.replace += `${line.slice(1)}\n`;
    } else if (line !== "") {
      throw new Error(`${place}: expected a title, a test, a file or a line of an edit: ${line}`);
    }
  });
  for (const { name, place, edits, tests } of mutations) {
    if (tests.length === 0) throw new Error(`${place}: no test must detect that ${name}`);
    const isChange = ({ find, replace }: Edit) => find !== "" && find !== replace;
    if (edits.length > 0 && edits.every(isChange)) continue;
    throw new Error(`${place}: lacks an edit, or has one without lines to find or to change`);
  }
  return mutations;
}

/**
 * Applies a mutation. @returns the new texts of the files that it edits.
 * @param read returns the text of a file.
 * @throws {Error} if the lines of an edit do not occur exactly once.
 */
export function mutated(
  { place, edits }: Mutation,
  read: (path: string) => string,
): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    // Lines are found after a line break, which the first one lacks.
    const text = texts.get(file) ?? `\n${read(file)}`;
    const parts = text.split(`\n${find}`);
    if (parts.length !== 2) {
      throw new Error(`${place}: ${file} contains these lines ${parts.length - 1} times:\n${find}`);
    }
    texts.set(file, parts.join(`\n${replace}`));
  }
  return new Map([...texts].map(([file, text]) => [file, text.slice(1)]));
}

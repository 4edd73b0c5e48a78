/** A deliberate bug, and how it is applied. */

/** A text replacement in a file. */
export interface Edit {
  file: string;
  find: string;
  replace: string;
}

export interface Mutation {
  /** Describes the bug. */
  name: string;
  edits: readonly Edit[];
  /** Test files, run in this order until one fails. */
  tests: readonly string[];
}

/**
 * Bugs by the file in `src/` that they are in, and by name: the tests, the text that is replaced,
 * its replacement (default: none), and edits to other places. A test is named like its file,
 * without `tests/` and `_test.ts`.
 */
export type Bugs = Record<
  string,
  Record<string, [tests: string | string[], find: string, replace?: string, ...others: Edit[]]>
>;

/** Returns the mutations with paths from the root of the repository. */
export function mutationsOf(bugs: Bugs): Mutation[] {
  return Object.entries(bugs).flatMap(([file, ofFile]) =>
    Object.entries(ofFile).map(([name, [tests, find, replace = "", ...others]]) => ({
      name,
      edits: [{ file, find, replace }, ...others].map((edit) => (
        { ...edit, file: `src/${edit.file}` }
      )),
      tests: [tests].flat().map((test) => `tests/${test}_test.ts`),
    }))
  );
}

/** Applies an edit to a source file. @throws {Error} if the text does not occur exactly once. */
export function edited(text: string, { file, find, replace }: Edit): string {
  if (text.split(find).length !== 2) {
    throw new Error(`${file} does not contain this text exactly once; update the edit:\n${find}`);
  }
  return text.replace(find, () => replace);
}

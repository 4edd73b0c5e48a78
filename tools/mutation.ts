/** The form of the deliberate bugs in `mutations.ts`. */

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

/** Applies an edit to a source file. @throws {Error} if the text does not occur exactly once. */
export function edited(text: string, { file, find, replace }: Edit): string {
  if (text.split(find).length !== 2) {
    throw new Error(`${file} does not contain this text exactly once; update the edit:\n${find}`);
  }
  return text.replace(find, () => replace);
}

/** An edit to a file in `src/`. */
export function edit(file: string, find: string, replace = ""): Edit {
  return { file: `src/${file}`, find, replace };
}

/**
 * Compares what a document shows of an output with what there is. Ids, hashes and times are new in
 * each run, numbers in a text may be others, and a document may leave out lines.
 */
import { isDeepStrictEqual } from "node:util";

/** A part that a document leaves open: `<bytes>`, `…`. */
const OPEN = /<[^<>]+>|…/g;

/** Replaces what is new in each run by its kind. */
function normalized(text: string): string {
  return text.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "UUID")
    .replaceAll(/[0-9a-f]{64}/g, "HASH")
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME");
}

/**
 * @returns the first line of `shown` that is not in `output` behind the lines before; null: all
 * are.
 */
export function missingLine(shown: string, output: string): string | null {
  const linesOf = (text: string) =>
    normalized(text).replaceAll(/\d+/g, "0").split("\n").map((line) => line.trim());
  const lines = linesOf(output);
  for (const line of linesOf(shown).filter((line) => line !== "")) {
    const literals = line.split(OPEN).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const pattern = new RegExp(`^${literals.join(".*")}$`);
    const at = lines.findIndex((candidate) => pattern.test(candidate));
    if (at < 0) return line;
    lines.splice(0, at + 1);
  }
  return null;
}

/** Whether two JSON texts are the same but for ids, hashes and times. */
export function isAlike(shown: string, output: string): boolean {
  return isDeepStrictEqual(JSON.parse(normalized(shown)), JSON.parse(normalized(output)));
}

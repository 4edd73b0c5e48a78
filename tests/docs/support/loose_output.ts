/**
 * Compares the output that a document shows with actual output. Ids, hashes, times and numbers in
 * prose may differ between runs, and a document may omit lines.
 */

/** A placeholder in a document: `<bytes>`, `…`. */
const OPEN = /<[^<>]+>|…/g;

/** Replaces values that differ between runs with the name of their kind. */
function normalized(text: string): string {
  return text.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "UUID")
    .replaceAll(/[0-9a-f]{64}/g, "HASH")
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME");
}

/**
 * Matches the lines of `shown` against those of `output`, in order.
 * @returns the first line without a match; null if every line has one.
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

/**
 * Compares what a document shows of an output with what there is. Ids, hashes and times are new in
 * each run, numbers in a text may be others, and a document may leave out lines.
 */

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
const HASH = /[0-9a-f]{64}/;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/;
/** A part that a document leaves open: `<bytes>`, `…`. */
const OPEN = /<[^<>]+>|…/;
const NUMBER = /\d+/;
const SOURCES = [UUID, HASH, TIME, OPEN, NUMBER].map(({ source }) => source);
const VARIABLE = new RegExp(`(${SOURCES.join("|")})`);

/**
 * @returns the first line of `shown` that is not in `output` behind the lines before; null: all
 * are.
 */
export function missingLine(shown: string, output: string): string | null {
  const lines = output.split("\n");
  for (const line of shown.split("\n").filter((line) => line.trim() !== "")) {
    const pattern = patternOf(line.trim());
    const at = lines.findIndex((candidate) => pattern.test(candidate.trim()));
    if (at < 0) return line;
    lines.splice(0, at + 1);
  }
  return null;
}

function patternOf(line: string): RegExp {
  const pieces: string[] = [];
  let rest = line;
  for (let match = VARIABLE.exec(rest); match !== null; match = VARIABLE.exec(rest)) {
    pieces.push(literal(rest.slice(0, match.index)), openPattern(match[0]));
    rest = rest.slice(match.index + match[0].length);
  }
  return new RegExp(`^${pieces.join("")}${literal(rest)}$`);
}

function openPattern(found: string): string {
  const kind = [UUID, HASH, TIME, NUMBER].find((kind) => whole(kind).test(found));
  return kind === undefined ? ".*" : kind.source;
}

function literal(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function whole(pattern: RegExp): RegExp {
  return new RegExp(`^(${pattern.source})$`);
}

/** Whether two JSON values are the same but for ids, hashes and times. */
export function isAlike(shown: unknown, got: unknown): boolean {
  if (typeof shown === "string" && typeof got === "string") {
    const kind = [UUID, HASH, TIME].find((kind) => whole(kind).test(shown));
    return kind === undefined ? shown === got : whole(kind).test(got);
  }
  if (typeof shown !== "object" || shown === null || typeof got !== "object" || got === null) {
    return shown === got;
  }
  const [names, gotNames] = [Object.keys(shown).sort(), Object.keys(got).sort()];
  return names.join() === gotNames.join() &&
    names.every((name) =>
      isAlike(shown[name as keyof typeof shown], got[name as keyof typeof got])
    );
}

/**
 * The code fences of the documents. A fence in `sh` is run, in order, in one shell for each
 * document. A word behind the language says what else is to be done:
 *
 * - `sh background`: a service that stays until Ctrl-C, in a terminal of its own. The test goes on
 *   once it answers, and ends it before the next such fence and at the end.
 * - `sh follow`: never ends; the test ends it once it has printed something.
 * - `sh no-run`: is not run. The reason stands in a comment above: `<!-- no-run: why -->`.
 * - `json output`, `text output`: what the fence before has printed, more or less.
 */

export interface Fence {
  language: string;
  /** The word behind the language; empty if there is none. */
  tag: string;
  text: string;
  /** Line of its opening in the document, from 1. */
  line: number;
  /** Of a `no-run` fence. */
  reason: string | null;
}

/** A fence in a list is indented, and so are its lines. */
const OPENING = /^( *)```(\S*) ?(.*)$/;
const NO_RUN_REASON = /^<!-- no-run: (.+) -->$/;

/** All fences of a Markdown text. @throws {Error} when one is not closed. */
export function fencesOf(markdown: string): Fence[] {
  const lines = markdown.split("\n");
  const fences: Fence[] = [];
  for (let at = 0; at < lines.length; at++) {
    const opening = OPENING.exec(lines[at]!);
    if (opening === null) continue;
    const [, margin, language, tag] = opening as unknown as string[];
    const end = lines.indexOf(`${margin}\`\`\``, at + 1);
    if (end < 0) throw new Error(`line ${at + 1}: the fence has no end`);
    fences.push({
      language: language!,
      tag: tag!,
      text: lines.slice(at + 1, end).map((line) => line.slice(margin!.length)).join("\n"),
      line: at + 1,
      reason: reasonAbove(lines, at),
    });
    at = end;
  }
  return fences;
}

function reasonAbove(lines: string[], at: number): string | null {
  const above = lines.slice(0, at).findLast((line) => line !== "") ?? "";
  return NO_RUN_REASON.exec(above)?.[1] ?? null;
}

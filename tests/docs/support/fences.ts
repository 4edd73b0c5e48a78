/**
 * The code blocks in the documentation. The `sh` code blocks in a document run in order in one
 * shell, unless a tag after the language says otherwise:
 *
 * - `sh background`: a service that runs until Ctrl-C, in its own terminal. The test continues once
 *   the service responds, and stops it before the next such code block and at the end.
 * - `sh follow`: a command that never ends. The test interrupts it once it has printed something.
 * - `sh no-run`: not run. A comment above gives the reason: `<!-- no-run: why -->`.
 * - `text output`: the approximate output of the previous code block.
 */

export interface Fence {
  language: string;
  /** The word after the language, or an empty string. */
  tag: string;
  text: string;
  /** Number of the line on which the code block opens, counted from 1. */
  line: number;
  /** The reason given for a `no-run` code block. */
  reason: string | null;
}

/** A code block in a list is indented, as are its lines. */
const OPENING = /^( *)```(\S*) ?(.*)$/;
const NO_RUN_REASON = /^<!-- no-run: (.+) -->$/;

/** All code blocks in a Markdown document. @throws {Error} if one is not closed. */
export function fencesOf(markdown: string): Fence[] {
  const lines = markdown.split("\n");
  const fences: Fence[] = [];
  for (let at = 0; at < lines.length; at++) {
    const opening = OPENING.exec(lines[at]!);
    if (opening === null) continue;
    const [, margin, language, tag] = opening as unknown as string[];
    const end = lines.indexOf(`${margin}\`\`\``, at + 1);
    if (end < 0) throw new Error(`line ${at + 1}: unclosed fence`);
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

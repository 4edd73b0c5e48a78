/** `JSON.parse` without its mistake on escaped names; see `json_build.ts`. Runs in any runtime. */
import { buildJson } from "./json_build.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * Parses JSON that need not be checked for more than its grammar.
 * @throws {SyntaxError}
 */
// deno-lint-ignore no-explicit-any -- as JSON.parse, whose place it takes
export function parseJsonText(text: string): any {
  const value = JSON.parse(text);
  return text.includes("\\") && hasEscapedName(text) ? buildJson(text) : value;
}

/** Whether the name of some member is spelled with an escape. */
function hasEscapedName(text: string): boolean {
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at)) {
    let isEscaped = false;
    for (at++; text.charCodeAt(at) !== QUOTE; at++) {
      if (text.charCodeAt(at) !== BACKSLASH) continue;
      isEscaped = true;
      at += 1;
    }
    at += 1;
    while (text.charCodeAt(at) <= 0x20) at += 1;
    if (isEscaped && text.charCodeAt(at) === COLON) return true;
  }
  return false;
}

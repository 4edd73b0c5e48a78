/** Corrupts the JSON of a correctly framed body, so that the fault reaches the JSON parser. */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";
import { changeBytes, changeTokens, deepText, textOf } from "./almost_json.ts";

/** A known or unknown member of a batch. */
const MEMBERS = ['"x":1,', '"v":1,', '"events":[],', '"payload":null,', '"source":"system",'];
/** Values that exercise the validation rules for events. */
const NAMED = [
  ...['"service/x"', '"system"', '"service.source_lineage"', '"2026-02-30T00:00:00Z"', '"../.."'],
  ...['"2026-01-01T00:00:00.1234567891Z"', '"2026-01-01T00:00:00+01:00"', '""', "null", "{}"],
];

/** A body with one to three faults, or occasionally none. */
export function mutateJson(random: SeededRandom, body: Buffer): Buffer {
  let mutated = body;
  do {
    const choice = random.below(10);
    if (choice === 0) mutated = mutated.subarray(0, random.below(mutated.length + 1));
    else if (choice < 3) mutated = changeBytes(random, mutated);
    else {
      const text = changeTokens(random, mutated.toString(), () => hostileText(random));
      mutated = Buffer.from(text);
    }
  } while (random.chance(0.3));
  return mutated;
}

/** A JSON value, or nearly one: deeply nested, long, or one that exercises a validation rule. */
function hostileText(random: SeededRandom): string {
  const kind = random.below(10);
  if (kind === 0) return deepText(random);
  if (kind === 1) return longText(random);
  if (kind === 2) return random.pick(MEMBERS);
  return kind < 5 ? random.pick(NAMED) : textOf(random, random.below(3));
}

/** Strings around the length limits of names, and numbers with many digits. */
function longText(random: SeededRandom): string {
  const length = random.pick([126, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 5000]);
  const unit = random.pick(["a", "é", "\u{1f600}", "\\u0041", "9", "\\\\"]);
  const text = unit.repeat(length);
  return unit === "9" && random.chance(0.5) ? text : `"${text}"`;
}

/** What runs the program. */
import process from "node:process";

/** Version of V8, its first two numbers: 13.6. */
export function v8Version(): number {
  return Number.parseFloat(process.versions.v8);
}

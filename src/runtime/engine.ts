/** The JavaScript engine. */
import process from "node:process";

/** Returns the major and minor version of V8, for example 13.6. */
export function v8Version(): number {
  return Number.parseFloat(process.versions.v8);
}

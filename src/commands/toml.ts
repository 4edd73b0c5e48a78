/** Parses TOML. The only module that depends on the parser. */
import { parse, TomlDate, TomlError } from "smol-toml";

/** A table: strings, `bigint` integers, `number` floats, booleans, dates, arrays and tables. */
export type TomlTable = Record<string, unknown>;

/** Invalid TOML. The message gives the position and quotes nothing, because of the token. */
export class TomlSyntaxError extends Error {
  override name = "TomlSyntaxError";
}

/** Parses a document. @throws {TomlSyntaxError} */
export function parseToml(text: string): TomlTable {
  try {
    return parse(text, { integersAsBigInt: true });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split("\n", 1)[0]!.replace("Invalid TOML document: ", "");
    throw new TomlSyntaxError(`line ${error.line}, column ${error.column}: ${reason}`);
  }
}

/** Returns the type of a value with its article: `an integer`, `a table`. */
export function tomlTypeOf(value: unknown): string {
  if (value instanceof TomlDate) return "a date";
  if (Array.isArray(value)) return "an array";
  switch (typeof value) {
    case "bigint":
      return "an integer";
    case "number":
      return "a float";
    case "object":
      return "a table";
    default:
      return `a ${typeof value}`;
  }
}

/** JSON values as `JSON.parse` returns them. */

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [name: string]: JsonValue };

/** Returns whether a value is a JSON object: neither null nor an array. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Strict JSON: exactly one JSON value in UTF-8 without a byte order mark, no member name twice in
 * an object, no unpaired surrogates, no number that binary64 can't hold.
 *
 * The fast way is one scan and the built-in parser. A text has as many members as the parsed value
 * has keys only if no name appears twice. Whatever the fast way refuses, the exact way explains.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { JSON_DEPTH_MAX } from "../../limits.ts";
import { buildJson } from "./json_build.ts";
import { cutDeepContainers } from "./json_cut.ts";
import { findJsonFault, type JsonFault } from "./json_fault.ts";
import { type JsonScan, scanJson } from "./json_scan.ts";
import type { JsonValue } from "./json_value.ts";

export type { JsonObject, JsonValue } from "./json_value.ts";

/** A text that is not strict JSON. */
export class JsonError extends Error {
  override name = "JsonError";
  readonly fault: JsonFault;

  constructor(fault: JsonFault) {
    super(`${fault.message} at byte ${fault.offsetBytes}`);
    this.fault = fault;
  }
}

/**
 * Parses a body. Containers nested deeper than JSON_DEPTH_MAX come back as 0: no caller accepts
 * that depth, and building what a hostile body nests could take all memory.
 *
 * @throws {JsonError} with the first fault.
 */
export function parseJson(bytes: Uint8Array): JsonValue {
  const scan = scanJson(bytes);
  if (scan !== null && scan.depth <= JSON_DEPTH_MAX) {
    const value = tryParse(bytes, scan);
    if (value !== undefined && countMembers(value) === scan.members) return value;
  }
  const fault = findJsonFault(bytes);
  if (fault !== null) throw new JsonError(fault);
  assert(scan !== null && scan.depth > JSON_DEPTH_MAX, "both ways to check JSON agree");
  return buildJson(UTF8.decode(cutDeepContainers(bytes, JSON_DEPTH_MAX)));
}

/** @returns undefined when the text is not JSON or not UTF-8. */
function tryParse(bytes: Uint8Array, scan: JsonScan): JsonValue | undefined {
  try {
    const text = scan.isAscii ? decodeAscii(bytes) : UTF8.decode(bytes);
    const value = JSON.parse(text);
    return scan.hasEscapedName ? buildJson(text) : value;
  } catch {
    return undefined; // The exact way says why.
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** ASCII is a part of Latin-1, whose decoding is but a copy. */
function decodeAscii(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

/** Keys of all objects in a value that is at most JSON_DEPTH_MAX deep. */
function countMembers(value: JsonValue): number {
  if (typeof value !== "object" || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += countMembers(item);
    return members;
  }
  for (const name in value) members += 1 + countMembers(value[name]!);
  return members;
}

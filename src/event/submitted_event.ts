/** Validates submitted events. */
import { PAYLOAD_DEPTH_MAX } from "../limits.ts";
import { quoteShort } from "./json/quote_string.ts";
import { isJsonObject, type JsonObject, type JsonValue, SKIPPED } from "./json/strict_json.ts";
import { kindFault, nameFault, recordKeyFault } from "./names.ts";
import { occurredAtFault } from "./timestamp.ts";

const MEMBERS = new Set(["stream", "record_key", "kind", "payload", "occurred_at"]);
const REQUIRED_MEMBERS = ["stream", "record_key", "kind", "payload"] as const;

const RULES = {
  stream: nameFault,
  record_key: recordKeyFault,
  kind: kindFault,
  occurred_at: occurredAtFault,
};

/** Returns a message about the first rule that an event violates; null if it is valid. */
export function eventFault(submitted: JsonValue): string | null {
  if (!isJsonObject(submitted)) return "event must be an object";
  const fault = memberFault(submitted) ?? ruleFault(submitted);
  if (fault !== null) return fault;
  const isTooDeep = submitted.payload !== SKIPPED;
  return isTooDeep ? `payload is nested more than ${PAYLOAD_DEPTH_MAX} levels deep` : null;
}

/** Returns a message about an unknown or missing member, or one of the wrong type. */
function memberFault(submitted: JsonObject): string | null {
  for (const name in submitted) {
    if (!MEMBERS.has(name)) return `event has an unknown member ${quoteShort(name)}`;
    if (name !== "payload" && typeof submitted[name] !== "string") {
      return `${name} must be a string`;
    }
  }
  const missing = REQUIRED_MEMBERS.find((name) => !Object.hasOwn(submitted, name));
  return missing === undefined ? null : `missing member ${missing}`;
}

function ruleFault(submitted: JsonObject): string | null {
  for (const [name, faultOf] of Object.entries(RULES)) {
    const text = submitted[name];
    const fault = typeof text === "string" ? faultOf(text) : null;
    if (fault !== null) return `${name} ${fault}`;
  }
  return null;
}

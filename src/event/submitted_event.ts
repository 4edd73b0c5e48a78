/** Validation of a submitted event. */
import { PAYLOAD_DEPTH_MAX } from "../limits.ts";
import { canonicalize, DepthError } from "./json/canonical_json.ts";
import { quoteShort } from "./json/quote_string.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "./json/strict_json.ts";
import { kindFault, nameFault, recordKeyFault } from "./names.ts";
import { occurredAtFault } from "./timestamp.ts";
import type { PreparedEvent } from "./types.ts";

/**
 * Validates an event and canonicalizes its payload.
 * @returns the prepared event, or a message about the first broken rule.
 */
export function prepareEvent(submitted: JsonValue): PreparedEvent | string {
  if (!isJsonObject(submitted)) return "event must be an object";
  const fault = memberFault(submitted) ?? ruleFault(submitted);
  if (fault !== null) return fault;
  const payload = canonicalPayload(submitted.payload!);
  if (payload === null) return `payload nests deeper than ${PAYLOAD_DEPTH_MAX} containers`;
  return {
    stream: submitted.stream as string,
    recordKey: submitted.record_key as string,
    kind: submitted.kind as string,
    occurredAt: submitted.occurred_at as string | undefined,
    payload,
  };
}

/** Reports an unknown member, a missing one or one of the wrong type. */
function memberFault(submitted: JsonObject): string | null {
  let known = 0;
  for (const name in submitted) {
    switch (name) {
      case "stream":
      case "record_key":
      case "kind":
        if (typeof submitted[name] !== "string") return `${name} must be a string`;
        known++;
        break;
      case "payload":
        known++;
        break;
      case "occurred_at":
        if (typeof submitted[name] !== "string") return `${name} must be a string`;
        break;
      default:
        return `event has an unknown member ${quoteShort(name)}`;
    }
  }
  if (known === REQUIRED_MEMBERS.length) return null;
  const missing = REQUIRED_MEMBERS.find((name) => !Object.hasOwn(submitted, name));
  return `event has no member ${missing}`;
}

const REQUIRED_MEMBERS = ["stream", "record_key", "kind", "payload"] as const;

function ruleFault(submitted: JsonObject): string | null {
  let fault = nameFault(submitted.stream as string);
  if (fault !== null) return `stream ${fault}`;
  fault = recordKeyFault(submitted.record_key as string);
  if (fault !== null) return `record_key ${fault}`;
  fault = kindFault(submitted.kind as string);
  if (fault !== null) return `kind ${fault}`;
  const occurredAt = submitted.occurred_at as string | undefined;
  fault = occurredAt === undefined ? null : occurredAtFault(occurredAt);
  return fault === null ? null : `occurred_at ${fault}`;
}

/** Returns null when the payload is too deep. */
function canonicalPayload(payload: JsonValue): string | null {
  try {
    return canonicalize(payload, PAYLOAD_DEPTH_MAX);
  } catch (error) {
    if (error instanceof DepthError) return null;
    throw error;
  }
}

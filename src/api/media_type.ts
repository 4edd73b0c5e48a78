/** Media types of request bodies: uncompressed JSON in UTF-8. */
import { ApiError } from "../event/api_error.ts";
import type { HttpRequest } from "../http/message.ts";

const JSON_TYPE = "application/json";
/** Optional whitespace of RFC 9110 section 5.6.3. */
const OUTER_BLANKS = /^[ \t]+|[ \t]+$/g;
const CHARSET_UTF8 = /^charset=(?:utf-8|"utf-8")$/i;

/** Checks content type and encoding. @throws {ApiError} `unsupported_media_type`. */
export function checkMediaType(request: HttpRequest): void {
  const contentType = request.header("content-type");
  if (contentType !== null && contentType !== JSON_TYPE && !isJsonInUtf8(contentType)) {
    throw new ApiError(
      "unsupported_media_type",
      "content type must be application/json; its only allowed parameter is charset=utf-8",
    );
  }
  if (request.header("content-encoding") !== null) {
    throw new ApiError("unsupported_media_type", "content encoding is not supported");
  }
}

function isJsonInUtf8(contentType: string): boolean {
  const [type = "", ...parameters] = contentType.split(";")
    .map((part) => part.replace(OUTER_BLANKS, ""));
  return type.toLowerCase() === JSON_TYPE &&
    parameters.every((parameter) => parameter === "" || CHARSET_UTF8.test(parameter));
}

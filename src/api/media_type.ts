/** Which bodies a POST route takes: plain JSON in UTF-8. */
import { ApiError } from "../event/api_error.ts";
import type { HttpRequest } from "../http/message.ts";

const JSON_TYPE = "application/json";
/** The blanks that RFC 9110 section 5.6.3 allows around a parameter. */
const OUTER_BLANKS = /^[ \t]+|[ \t]+$/g;
const CHARSET_UTF8 = /^charset=(?:utf-8|"utf-8")$/i;

/**
 * Checks the headers that describe a body.
 * @throws {ApiError} `unsupported_media_type`.
 */
export function checkMediaType(request: HttpRequest): void {
  const contentType = request.header("content-type");
  if (contentType !== null && contentType !== JSON_TYPE && !isJsonInUtf8(contentType)) {
    throw new ApiError(
      "unsupported_media_type",
      "content type must be application/json, with no parameter but charset=utf-8",
    );
  }
  if (request.header("content-encoding") !== null) {
    throw new ApiError("unsupported_media_type", "content encoding is not supported");
  }
}

function isJsonInUtf8(contentType: string): boolean {
  const [type = "", ...parameters] = contentType.split(";").map(trimBlanks);
  return type.toLowerCase() === JSON_TYPE &&
    parameters.every((parameter) => parameter === "" || CHARSET_UTF8.test(parameter));
}

function trimBlanks(text: string): string {
  return text.replace(OUTER_BLANKS, "");
}

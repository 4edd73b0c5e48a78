/** Splits a request target without decoding: a path matches a route only literally. */

export interface Target {
  path: string;
  /** Without its question mark. */
  query: string;
}

const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;

/** Splits the origin form or the absolute form of RFC 9112 section 3.2. */
export function splitTarget(target: string): Target {
  const origin = target.startsWith("/") ? target : originForm(target);
  const queryAt = origin.indexOf("?");
  return queryAt < 0
    ? { path: origin, query: "" }
    : { path: origin.slice(0, queryAt), query: origin.slice(queryAt + 1) };
}

/** Removes scheme and authority; an absolute target without a path has the path `/`. */
function originForm(target: string): string {
  const authority = ABSOLUTE_FORM.exec(target);
  if (authority === null) return target;
  const rest = target.slice(authority[0].length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

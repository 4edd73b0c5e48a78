/** Event ids for tests. */

/** An event id. Ids sort by `place`. */
export function idAt(place: number): string {
  return `019b7c4e-2d37-7a01-8f00-${place.toString(16).padStart(12, "0")}`;
}

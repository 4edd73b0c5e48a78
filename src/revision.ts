/**
 * The source revision of a build. Builds replace this file; in the tree it is empty, since the next
 * commit would outdate any value.
 */
export const REVISION = "";

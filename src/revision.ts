/**
 * The revision of a build, which replaces this file. It is empty in the tree, where any value would
 * be outdated by the next commit.
 */
export const REVISION = "";

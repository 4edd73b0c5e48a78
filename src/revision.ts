/**
 * The revision that a build was made of. The build replaces this file; in the tree it is empty,
 * because nothing there could be right for longer than a commit.
 */
export const REVISION = "";

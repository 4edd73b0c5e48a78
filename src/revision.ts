/**
 * The source revision of a build. Builds replace this file; in the tree it is empty, since the next
 * commit would outdate any value.
 */
export const REVISION = "";
/** Whether the build embeds a runtime given by DENORT_BIN, which may be older than supported. */
export const IS_TEST_BUILD = false;

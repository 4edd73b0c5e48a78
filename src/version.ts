/** The version of the program. */
import { REVISION } from "./revision.ts";

/** Must equal the version in `deno.json` and `package.json`. */
export const VERSION = "0.2.0";

/** Output of `--version`: the version and, in a build, `+` and the revision. */
export const FULL_VERSION: string = REVISION === "" ? VERSION : `${VERSION}+${REVISION}`;

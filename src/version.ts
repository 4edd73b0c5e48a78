/** Which version of the product this is. */
import { REVISION } from "./revision.ts";

/** Version of the product; `deno.json` and `package.json` carry the same one. */
export const VERSION = "0.2.0";

/** What `--version` prints: the version, and in a build the revision behind a plus. */
export const FULL_VERSION: string = REVISION === "" ? VERSION : `${VERSION}+${REVISION}`;

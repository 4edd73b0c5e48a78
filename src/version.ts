/** Version of the product; `deno.json` and `package.json` carry the same one. */
export const VERSION = "0.2.0";

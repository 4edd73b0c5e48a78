/** The configuration file that `init` writes and checks. */
import { DEFAULTS } from "./config.ts";

const { data, security, integrity, server, replay } = DEFAULTS;

/** Valid TOML with every key at its default. JSON strings are TOML strings. */
export const CONFIG_TEMPLATE =
  `# Configuration of one deployment. Relative paths start at the folder of this file.

[data]
# Contains log/. No other program may write here.
dir = ${JSON.stringify(data.dir)}

[security]
mode = ${JSON.stringify(security.mode)}

[integrity]
anchor = ${JSON.stringify(integrity.anchor)}

[server]
# Unix domain socket.
socket = ${JSON.stringify(server.socket)}
# Bearer token, stored here as plain text. Empty: no authentication.
token = ${JSON.stringify(server.token)}

[replay]
# Events per page without a limit parameter, and the largest limit.
default_limit = ${replay.default_limit}
max_limit = ${replay.max_limit}
`;

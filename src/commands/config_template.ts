/**
 * The configuration file that `init` writes and checks, with every key at its default. These are
 * the defaults of keys missing from other files.
 */
export const CONFIG_TEMPLATE =
  `# Configuration of one deployment. Relative paths are relative to this directory.

[data]
# Contains log/. No other program may write here.
dir = "./data"

[security]
mode = "open"

[integrity]
anchor = "none"

[server]
# Unix domain socket.
socket = "data/ground.sock"
# Bearer token, stored here as plain text. Empty: no authentication.
token = ""

[replay]
# Events per page without a limit parameter, and the largest limit.
default_limit = 1000
max_limit = 100000
`;

/**
 * The configuration file that `init` writes and checks, and that `--help` prints, with every key at
 * its default. Keys that a configuration file omits have these values.
 */
export const CONFIG_TEMPLATE = `# Relative paths are relative to the directory of this file.

[data]
# Contains log/. No other program may write here.
dir = "./data"

[security]
# Only "open" is supported.
mode = "open"

[integrity]
# Only "none" is supported.
anchor = "none"

[server]
# Unix domain socket; absolute path up to 107 bytes (macOS: 103).
socket = "data/ground.sock"
# Bearer token, stored here as plain text. Empty: no authentication.
token = ""

[replay]
# Page size if a request has no limit parameter.
default_limit = 1000
# Largest limit that a request may set.
max_limit = 100000
`;

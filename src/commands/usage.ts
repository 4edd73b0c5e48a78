/** What `--help` prints. */
export const USAGE = `Durable, append-only event log over HTTP/1.1 on a Unix domain socket.

Usage: service [--config <PATH>] <COMMAND>

Commands:
  init [DIR]        Create or validate a deployment in DIR (default: the current folder)
  serve             Take the log writer and serve HTTP on the configured socket
  seal              Move the append tail into immutable Parquet segments
  verify [--chain]  Check the log without changing it; --chain also recomputes every hash

Options:
  --config <PATH>   Configuration file (default: ./service.toml); init ignores it
  -h, --help        Print this help
  -V, --version     Print the version

Exit status: 0 success, 1 operational failure, 2 bad arguments or configuration,
3 verify found a violation, 4 unsupported mode, anchor or format.
`;

/** A path that is not UTF-8. The shell passes on the raw byte, which the runtimes cannot. */

/** Returns a wrapper that adds the path of a file in `folder` to a command as its last argument. */
export function withLatin1Path(folder: string): string[] {
  const script = 'path="$1/caf$(printf "\\351")"; shift; exec "$@" "$path"';
  return ["sh", "-c", script, "sh", folder];
}

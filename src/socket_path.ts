/** The limit on the length of a Unix socket's path. */
import process from "node:process";

/** Size of `sockaddr_un.sun_path` without the NUL: 107 on Linux, 103 on macOS and the BSDs. */
export const SOCKET_PATH_BYTES_MAX = process.platform === "linux" ? 107 : 103;

#!/usr/bin/env python3
"""A consumer: follows the log with `requests`, and prints each event as one line of JSON.

    python3 examples/python/consumer.py --socket demo/data/ground.sock --cursor /tmp/cursor

The consumer resumes from the position in the cursor file, which is written after the events are
printed. A crash in between repeats events, but never skips any.
"""

import argparse
import json
import os
import pathlib
import re
import socket
import sys
import time

try:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.connection import HTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool
except ImportError:
    requests, HTTPAdapter = None, object

PAUSE_S_MAX = 5.0
EVENTS_URL = "http://localhost/v1/events"
SOCKET_WAIT_S = 60
SOCKET_PATH_BYTES_MAX = 107 if sys.platform == "linux" else 103
# Until it has sent the whole log, the service sends a record every few seconds.
READ_TIMEOUT_S = 60


class UnixAdapter(HTTPAdapter):
    """Sends all requests of a session to a Unix socket, regardless of their host."""

    def __init__(self, path):
        super().__init__()

        class Connection(HTTPConnection):
            def _new_conn(self):
                connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                connected.settimeout(READ_TIMEOUT_S)
                try:
                    connected.connect(path)
                except PermissionError as error:
                    raise Refused(f"{path}: {error}")
                return connected

        self.pool = HTTPConnectionPool("localhost")
        self.pool.ConnectionCls = Connection

    def get_connection_with_tls_context(self, request, verify, proxies=None, cert=None):
        return self.pool

    def get_connection(self, url, proxies=None):  # requests before 2.32
        return self.pool


class Refused(Exception):
    """The service rejected the request, and a retry would not help."""


def wait_for_socket(path):
    """Waits until the service has made its socket. At boot, it may start after this program."""
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
        raise Refused(f"{path}: longer than {SOCKET_PATH_BYTES_MAX} bytes")
    deadline = time.monotonic() + SOCKET_WAIT_S
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            raise Refused(f"{path}: no such socket; is the service running?")
        time.sleep(0.2)
    if not pathlib.Path(path).is_socket():
        raise Refused(f"{path}: not a socket")
    if not os.access(path, os.W_OK):
        raise Refused(f"{path}: no write permission")


def read_cursor(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            position = file.read().strip()
    except FileNotFoundError:
        return None
    if not re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", position):
        raise Refused(f"{path} does not contain an event id; delete it to start from the beginning")
    return position


def write_cursor(path, event_id):
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(f"{event_id}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def document_of(response):
    document = response.json()
    if response.status_code == 200:
        return document
    failure = f"{document['error']}: {document['message']}"
    raise (Refused if response.status_code < 429 else ConnectionError)(failure)


def records_of(session, params):
    """Yields the records of one response until it ends."""
    with session.get(EVENTS_URL, params=params, stream=True, timeout=READ_TIMEOUT_S) as response:
        connected = response.raw.connection.sock
        if response.status_code != 200:
            document_of(response)
        if params["after"] is not None:
            check_position(session, params["after"])
        # Only LF ends a line; str.splitlines() would also split at U+2028 in a payload.
        for line in response.iter_lines(chunk_size=None, delimiter=b"\n"):
            if not line:
                continue
            record = json.loads(line)
            # From here on, an idle log sends nothing. A connection that will close has no socket.
            if record["type"] == "caught_up" and connected:
                connected.settimeout(None)
            yield record


def id_before(event_id):
    """Returns the greatest UUIDv7 below this one; None if there is none."""
    digits = event_id.replace("-", "")
    # Version and variant are no part of the number.
    number = (int(digits[:12] + digits[13:16], 16) << 62 | int(digits[16:], 16) % (1 << 62)) - 1
    if number < 0:
        return None
    high, low = f"{number >> 62:015x}", f"{1 << 63 | number % (1 << 62):016x}"
    return f"{high[:8]}-{high[8:12]}-7{high[12:]}-{low[:4]}-{low[4:]}"


def check_position(session, position):
    """After a restore from an older backup, the log may have lost the event at the position."""
    params = {"after": id_before(position), "limit": 1}
    with session.get(EVENTS_URL, params=params, timeout=READ_TIMEOUT_S) as response:
        page = document_of(response)
    if [event["event_id"] for event in page["events"]] != [position]:
        through = page["snapshot_through_event_id"]
        raise Refused(f"the cursor {position} is not in the log, which ends at {through}")


def follow(session, cursor_path, filters, once):
    position = read_cursor(cursor_path)
    failures = 0
    while True:
        try:
            for record in records_of(session, {**filters, "follow": "true", "after": position}):
                if record["type"] == "end":
                    raise ConnectionError(record.get("detail") or record["reason"])
                failures = 0
                for event in record.get("events", []):
                    print(json.dumps(event, ensure_ascii=False))
                sys.stdout.flush()
                if record["next_after"] != position:
                    position = record["next_after"]
                    write_cursor(cursor_path, position)
                if once and record["type"] == "caught_up":
                    return
            failure = "the connection was lost"
        except BrokenPipeError:
            raise
        except (requests.RequestException, ConnectionError, ValueError) as error:
            failure = str(error)
            if "timed out" in failure:
                failure = f"the service sent nothing for {READ_TIMEOUT_S} s"
        pause = min(0.1 * 2**failures, PAUSE_S_MAX)
        failures += 1
        print(f"{failure}; reconnecting in {pause:.1f} s", file=sys.stderr)
        time.sleep(pause)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket", required=True, help="socket of the service")
    parser.add_argument("--cursor", required=True, help="file that stores the position")
    parser.add_argument("--once", action="store_true", help="stop at the end of the log")
    parser.add_argument(
        "--token-file",
        type=lambda path: open(path).read().strip(),
        dest="token",
        metavar="FILE",
        help="file with the bearer token, if the service requires one",
    )
    for name in ("source", "stream", "record_key", "kind"):
        parser.add_argument(f"--{name.replace('_', '-')}", help="event filter")
    args = parser.parse_args()
    if requests is None:
        raise Refused("requests is missing: pip install -r examples/python/requirements.txt")
    wait_for_socket(args.socket)
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", UnixAdapter(args.socket))
    if args.token:
        session.headers["Authorization"] = f"Bearer {args.token}"
    names = ("source", "stream", "record_key", "kind")
    filters = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    follow(session, args.cursor, filters, args.once)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        # The reader of standard output, such as head, has ended. Exit without another flush.
        os._exit(141)
    except (Refused, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)

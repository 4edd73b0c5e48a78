#!/usr/bin/env python3
"""A connector: appends the rows of a CSV file, using only the standard library.

    python3 examples/python/connector.py --socket demo/data/ground.sock --stream contacts contacts.csv

The record key is the first column. A batch id consists of the file's name, its modification time
and the number of the batch's first row, so a second run, or a retry after a lost response, appends
nothing twice: the service returns `duplicate`. A modified file is appended again in full.
"""

import argparse
import csv
import http.client
import itertools
import json
import os
import pathlib
import socket
import sys
import time

BATCH_ROWS = 1000
ATTEMPTS_MAX = 8
PAUSE_S_MAX = 5.0
SOCKET_WAIT_S = 60
SOCKET_PATH_BYTES_MAX = 107 if sys.platform == "linux" else 103


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over the service's Unix socket."""

    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Refused(Exception):
    """The batch was not appended, and a retry would not help."""


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


def post(socket_path, token, body):
    """Sends one request. Returns the status, the headers and the JSON document of the response."""
    connection = UnixConnection(socket_path)
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request("POST", "/v1/events", body, headers)
        response = connection.getresponse()
        return response.status, response.headers, json.load(response)
    finally:
        connection.close()


def describe(document):
    """Returns the error of a response, with the reasons for each invalid event."""
    faults = [f"event {fault['index']}: {fault['message']}" for fault in document.get("errors", [])]
    return "\n  ".join([f"{document['error']}: {document['message']}", *faults])


def append(socket_path, token, batch):
    """Appends a batch durably, with retries. Returns the receipt."""
    # Encode the batch once, so that every attempt sends the same bytes.
    body = json.dumps(batch, ensure_ascii=False, allow_nan=False).encode()
    for attempt in itertools.count(1):
        pause = min(0.1 * 2**attempt, PAUSE_S_MAX)
        try:
            status, headers, document = post(socket_path, token, body)
            if status == 200:
                return document
            failure = describe(document)
            # After 429 and 500 storage_full, nothing was written. A 503 persists until a restart.
            if status != 429 and status < 500:
                raise Refused(failure)
            pause = max(pause, float(headers.get("Retry-After", 0)))
        except PermissionError as error:
            raise Refused(f"{socket_path}: {error}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            # The batch may be committed. Resending it is safe.
            failure = f"{socket_path}: {error}"
        if attempt == ATTEMPTS_MAX:
            raise Refused(f"{failure}; gave up after {attempt} attempts")
        print(f"{failure}; retrying in {pause:.1f} s", file=sys.stderr)
        time.sleep(pause)


def batches_of(rows, name, source, stream):
    for position in itertools.count(0, BATCH_ROWS):
        chunk = list(itertools.islice(rows, BATCH_ROWS))
        if not chunk:
            return
        events = [
            {
                "stream": stream,
                "record_key": next(iter(row.values())),
                "kind": "upserted",
                "payload": row,
            }
            for row in chunk
        ]
        yield {"source": source, "batch_id": f"{name}/{position}", "events": events}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket", required=True, help="socket of the service")
    parser.add_argument("--source", default="csv", help="source of the batches (default: csv)")
    parser.add_argument("--stream", required=True, help="stream of the events")
    parser.add_argument(
        "--token-file",
        type=lambda path: open(path).read().strip(),
        dest="token",
        metavar="FILE",
        help="file with the bearer token, if the service requires one",
    )
    parser.add_argument("file", help="UTF-8 CSV file with a header row")
    args = parser.parse_args()
    wait_for_socket(args.socket)
    with open(args.file, encoding="utf-8", newline="") as file:
        name = f"{os.path.basename(args.file)}/{os.fstat(file.fileno()).st_mtime_ns}"
        rows = csv.DictReader(file, strict=True)
        for batch in batches_of(rows, name, args.source, args.stream):
            receipt = append(args.socket, args.token, batch)
            print(receipt["status"], receipt["events"], "events through", receipt["last_event_id"])


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of standard output, such as head, has ended. Exit without another flush.
        os._exit(141)
    except (Refused, OSError, csv.Error, UnicodeError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)

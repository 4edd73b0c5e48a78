#!/usr/bin/env python3
"""Appends and reads events with the public groundhog-sdk 0.3.0, which works unmodified.

    pip install groundhog-sdk==0.3.0
    python3 examples/python/groundhog.py --socket demo/data/ground.sock

Appends a batch (a second run gets `duplicate`), lists the streams, and replays the stream page by
page. The service has no queries, catalog or projections: those calls return 404 `not_found`.
"""

import argparse
import os
import pathlib
import sys
import time

try:
    from groundhog_sdk import Ground, GroundError, deleted, native, upserted
except ImportError:
    Ground, GroundError = None, Exception

SOURCE = "stripe"
STREAM = "customers"
SOCKET_WAIT_S = 60
SOCKET_PATH_BYTES_MAX = 107 if sys.platform == "linux" else 103


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket", required=True, help="socket of the service")
    parser.add_argument(
        "--token-file",
        type=lambda path: open(path).read().strip(),
        dest="token",
        metavar="FILE",
        help="file with the bearer token, if the service requires one",
    )
    args = parser.parse_args()
    if Ground is None:
        sys.exit("groundhog-sdk is missing: pip install -r examples/python/requirements.txt")
    if len(os.fsencode(args.socket)) > SOCKET_PATH_BYTES_MAX:
        sys.exit(f"{args.socket}: longer than {SOCKET_PATH_BYTES_MAX} bytes")
    # At boot, the service may start after this program.
    deadline = time.monotonic() + SOCKET_WAIT_S
    while not os.path.exists(args.socket):
        if time.monotonic() > deadline:
            sys.exit(f"{args.socket}: no such socket; is the service running?")
        time.sleep(0.2)
    if not pathlib.Path(args.socket).is_socket():
        sys.exit(f"{args.socket}: not a socket")
    ground = Ground(f"unix:{args.socket}", token=args.token)

    events = [
        upserted(STREAM, "cus_1", {"name": "Ada"}, occurred_at="2026-01-31T09:00:00Z"),
        upserted(STREAM, "cus_2", {"name": "Grace"}),
        native(STREAM, "cus_1", "invoice.paid", {"total": 42.5}),
        deleted(STREAM, "cus_2", None),
    ]
    receipt = ground.send(SOURCE, events, batch_id="customers/1")
    print(receipt.status, receipt.events, "events through", receipt.last_event_id)

    for summary in ground.streams(source=SOURCE).streams:
        print(summary.source, summary.stream, summary.event_count)

    after = None
    while True:
        page = ground.events(after=after, source=SOURCE, stream=STREAM, limit=2)
        for event in page.events:
            print(event["event_id"], event["kind"], event["record_key"], event["payload"])
        after = page.next_after
        if after is None or after >= page.snapshot_through_event_id:
            break


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of standard output, such as head, has ended. Exit without another flush.
        os._exit(141)
    except GroundError as error:
        sys.exit(f"{error.code}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)

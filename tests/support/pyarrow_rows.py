"""Prints each column of a Parquet file as a JSON array of strings, as the tests compare them."""

import json
import sys
import uuid

import pyarrow.parquet

table = pyarrow.parquet.read_table(sys.argv[1], page_checksum_verification=True)


def text(name, value):
    if value is None or isinstance(value, str):
        return value
    if name == "event_id":
        return str(value if isinstance(value, uuid.UUID) else uuid.UUID(bytes=value))
    if name == "observed_at":
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
    return value.hex()


for name in table.column_names:
    print(json.dumps([text(name, value) for value in table.column(name).to_pylist()]))

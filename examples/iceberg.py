"""Adds the sealed segments of a log to the Iceberg table log.events, without copying them.

    python3 examples/iceberg.py demo/data/log

The catalog is `default`, configured in ~/.pyiceberg.yaml or PYICEBERG_CATALOG__DEFAULT__*. Run the
script again to add new segments. The directory may also be a copy made by `mirror segments`.
"""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

log = Path(sys.argv[1]).resolve()
segments = json.loads((log / "manifest.json").read_text())["segments"]
listed = [(log / segment["path"]).as_uri() for segment in segments]
if not listed:
    sys.exit(f"no sealed segments in {log}")
catalog = load_catalog("default")
catalog.create_namespace_if_not_exists("log")
table = catalog.create_table_if_not_exists(
    "log.events",
    schema=pq.read_schema(log / segments[0]["path"]),
    properties={"gc.enabled": "false"},
)
known = {task.file.file_path for task in table.scan().plan_files()}
new = [path for path in listed if path not in known]
if new:
    table.add_files(new)
print(f"{len(new)} segments added, {table.scan().to_arrow().num_rows} events in log.events")

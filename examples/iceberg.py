#!/usr/bin/env python3
"""Adds the sealed segments of a log to the Iceberg table log.events, without copying them.

    python3 examples/iceberg.py demo/data/log

The catalog is `default`, configured in ~/.pyiceberg.yaml or PYICEBERG_CATALOG__DEFAULT__*. Without
a configuration, it is a SQLite database in ./iceberg/, beside the table's metadata. Run the script
again to add new segments. The directory may also be a copy made by `mirror segments`.
"""

import argparse
import json
import sys
from pathlib import Path

CATALOG = "default"
LOCAL = Path("iceberg")


def open_catalog():
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    if Config().get_catalog_config(CATALOG):
        return load_catalog(CATALOG)
    LOCAL.mkdir(exist_ok=True)
    where = LOCAL.resolve()
    return load_catalog(
        CATALOG, type="sql", uri=f"sqlite:///{where}/catalog.db", warehouse=where.as_uri()
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path, help="log of a deployment: its data/log directory")
    log = parser.parse_args().log.resolve()
    try:
        import pyarrow.parquet as pq
        import pyiceberg  # noqa: F401
    except ImportError as error:
        sys.exit(f"{error.name} is missing: pip install -r examples/python/requirements.txt")
    segments = json.loads((log / "manifest.json").read_text())["segments"]
    listed = [(log / segment["path"]).as_uri() for segment in segments]
    if not listed:
        sys.exit(f"no sealed segments in {log}")
    catalog = open_catalog()
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


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(str(error))

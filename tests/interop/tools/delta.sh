#!/usr/bin/env bash
# A Delta table (delta-rs): appends, two writers at once, delete, optimize, vacuum; every version's rows are compared.
. "$(dirname "$0")/common.sh"
need_python deltalake pyarrow
python - <<'PY'
import os, threading
import deltalake, pyarrow as pa
from deltalake import DeltaTable, write_deltalake

print("deltalake", deltalake.__version__)
url = f"az://{os.environ['CONTAINER']}/tables/events"
options = {"account_name": os.environ["ACCOUNT"], "account_key": os.environ["KEY"], "endpoint": os.environ["ENDPOINT"],
           "allow_invalid_certificates": "true"}
def append(first, count):
    ids = list(range(first, first + count))
    rows = pa.table({"id": ids, "part": [i % 3 for i in ids]})
    write_deltalake(url, rows, mode="append", partition_by=["part"], storage_options=options)
ids = lambda **of: sorted(DeltaTable(url, storage_options=options, **of).to_pyarrow_table()["id"].to_pylist())

for batch in range(5):
    append(batch * 100, 100)
writers = [
    threading.Thread(target=lambda first=first: [append(first + i * 10, 10) for i in range(5)])
    for first in (1_000, 2_000)
]
[writer.start() for writer in writers]
[writer.join() for writer in writers]
expected = sorted([*range(500), *range(1_000, 1_050), *range(2_000, 2_050)])
assert ids() == expected, "an append of two writers is missing"
assert ids(version=2) == list(range(300)), "version 2 has other rows"
table = DeltaTable(url, storage_options=options)
table.delete("id < 100")
table.optimize.compact()
gone = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
assert len(gone) > 10, f"vacuum deleted {len(gone)} files"
assert ids() == expected[100:], "rows after vacuum"
# The end of an interpreter that loaded pyarrow aborts now and then.
print("all compared", flush=True)
os._exit(0)
PY

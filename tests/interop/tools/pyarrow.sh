#!/usr/bin/env bash
# pyarrow's own AzureFileSystem, which asks first whether the account is flat: folders, files, a dataset, copies, deletes.
. "$(dirname "$0")/common.sh"
need_python pyarrow
python - <<'PY'
import os
import pyarrow as pa, pyarrow.dataset as ds, pyarrow.fs as fs

print("pyarrow", pa.__version__)
authority = os.environ["ENDPOINT"].split("/")[2]
azure = fs.AzureFileSystem(account_name=os.environ["ACCOUNT"], account_key=os.environ["KEY"],
                           blob_storage_authority=authority, dfs_storage_authority=authority)
root = os.environ["CONTAINER"]
paths = lambda: sorted(found.path[len(root):] for found in azure.get_file_info(fs.FileSelector(root, recursive=True)))
azure.create_dir(f"{root}/x/y", recursive=True)
large = os.urandom(25_000_000)
for path, content in [("x/y/small", b"hello"), ("large", large)]:
    with azure.open_output_stream(f"{root}/{path}") as file:
        file.write(content)
    with azure.open_input_file(f"{root}/{path}") as file:
        assert file.read() == content, path
assert paths() == ["/large", "/x", "/x/y", "/x/y/small"], paths()
rows = pa.table({"id": list(range(1_000)), "part": [i % 3 for i in range(1_000)]})
ds.write_dataset(rows, f"{root}/rows", format="parquet", partitioning=["part"], filesystem=azure)
read = ds.dataset(f"{root}/rows", format="parquet", partitioning=["part"], filesystem=azure)
assert sorted(read.to_table()["id"].to_pylist()) == list(range(1_000))
azure.copy_file(f"{root}/x/y/small", f"{root}/copied")
azure.delete_dir_contents(f"{root}/rows")
azure.delete_dir(f"{root}/x")
azure.delete_file(f"{root}/large")
assert paths() == ["/copied", "/rows"], paths()
# The end of an interpreter that loaded pyarrow aborts now and then.
print("all compared", flush=True)
os._exit(0)
PY

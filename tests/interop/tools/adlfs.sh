#!/usr/bin/env bash
# adlfs (fsspec): a folder up and down, walk, append, move, ranges, delete.
. "$(dirname "$0")/common.sh"
need_python adlfs
make_data data
python - <<'PY'
import os
import adlfs, fsspec

print("adlfs", adlfs.__version__)
root = os.environ["CONTAINER"]
fs = fsspec.filesystem("abfs", connection_string=os.environ["AZURE_STORAGE_CONNECTION_STRING"])
fs.put("data/", f"{root}/up/", recursive=True)
assert len(fs.find(f"{root}/up")) == 43, fs.find(f"{root}/up")
assert fs.isdir(f"{root}/up/deep") and not fs.isdir(f"{root}/up/empty")
large = open("data/large.bin", "rb").read()
with fs.open(f"{root}/up/large.bin", "rb", block_size=1 << 20) as file:
    file.seek(5_000_000)
    assert file.read(100_000) == large[5_000_000:5_100_000]
ranges = fs.cat_ranges([f"{root}/up/large.bin"] * 2, [0, 9_000_000], [10, 9_000_100])
assert ranges == [large[:10], large[9_000_000:9_000_100]]
with fs.open(f"{root}/log", "ab") as file:
    file.write(b"one\n")
with fs.open(f"{root}/log", "ab") as file:
    file.write(b"two\n")
assert fs.cat(f"{root}/log") == b"one\ntwo\n"
fs.mv(f"{root}/log", f"{root}/moved")
assert fs.exists(f"{root}/moved") and not fs.exists(f"{root}/log")
fs.get(f"{root}/up/", "back/", recursive=True)
fs.rm(f"{root}/up", recursive=True)
fs.invalidate_cache()
assert fs.find(root) == [f"{root}/moved"], fs.find(root)
PY
diff -r data back

#!/usr/bin/env bash
# obstore (Rust's object_store): small and multipart puts, ranges, list, copy, rename, a create that must fail, delete.
. "$(dirname "$0")/common.sh"
need_python obstore
python - <<'PY'
import os
import obstore
from obstore.store import AzureStore

print("obstore", obstore.__version__)
store = AzureStore(
    os.environ["CONTAINER"],
    account_name=os.environ["ACCOUNT"],
    account_key=os.environ["KEY"],
    endpoint=os.environ["ENDPOINT"],
    client_options={"allow_invalid_certificates": True},
)
read = lambda path: bytes(store.get(path).bytes())
large = os.urandom(13_000_000)
store.put("dir/large", large, chunk_size=4 << 20, use_multipart=True)
assert read("dir/large") == large
assert bytes(store.get_range("dir/large", start=5_000_000, length=3_000_000)) == large[5_000_000:8_000_000]
names = [f"dir/a {i:03}+%25ü" for i in range(60)]
for name in names:
    store.put(name, name.encode())
listed = [one["path"] for page in store.list("dir") for one in page]
assert sorted(listed) == sorted([*names, "dir/large"]), listed
assert all(read(name) == name.encode() for name in names)
try:
    store.put(names[0], b"other", mode="create")
    raise SystemExit("a create overwrote a blob")
except obstore.exceptions.AlreadyExistsError:
    pass
store.copy("dir/large", "copies/large")
store.rename("copies/large", "copies/renamed")
assert read("copies/renamed") == large
store.delete([*names, "dir/large"])
assert [one["path"] for page in store.list() for one in page] == ["copies/renamed"]
PY

"""Clients of Data Lake Storage in Python against an account with a hierarchical namespace. Each check prints a line; the end says how many failed."""
import os
import socket
import sys
import traceback
from urllib.parse import urlparse

DFS, BLOB = os.environ["STAMP_DFS_ENDPOINT"], os.environ["STAMP_BLOB_ENDPOINT"]
ACCOUNT, KEY = os.environ["STAMP_ACCOUNT"], os.environ["STAMP_KEY"]
CONNECTION = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={BLOB}"
try:
    HOSTS = socket.gethostbyname(f"{ACCOUNT}.dfs.localhost").startswith("127.")
except OSError:
    HOSTS = False
ROOT = f"python-{os.getpid()}"
results = []


def check(name):
    """Runs the check at once. A module that is not installed skips it."""

    def run(work):
        try:
            work()
            results.append((name, "passed", ""))
        except ImportError as error:
            results.append((name, "skipped", str(error)))
        except Exception as error:
            traceback.print_exc(limit=3)
            results.append((name, "failed", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"))

    return run


from azure.core.exceptions import HttpResponseError
from azure.storage.filedatalake import DataLakeServiceClient

service = DataLakeServiceClient(DFS, credential=KEY)
fs = service.create_file_system(ROOT)


def code_of(work):
    try:
        work()
    except HttpResponseError as error:
        return f"{error.status_code} {error.error_code}"
    return "none"


@check("sdk: create, append, flush, read")
def _():
    file = fs.create_directory("sdk").create_file("f")
    file.append_data(b"hello ", 0, 6)
    file.append_data(b"world", 6, 5)
    file.flush_data(11)
    assert file.download_file().readall() == b"hello world"
    assert file.get_file_properties().size == 11


@check("sdk: upload_data, overwrite, ranges")
def _():
    data = os.urandom(9_000_000)
    file = fs.get_file_client("sdk/large")
    file.upload_data(data, overwrite=True, chunk_size=4_000_000)
    assert file.download_file(offset=5_000_000, length=1000).readall() == data[5_000_000:5_001_000]
    assert file.download_file().readall() == data
    assert code_of(lambda: file.upload_data(b"x", overwrite=False)).startswith(("409", "412"))


@check("sdk: metadata, headers, conditions, leases of files")
def _():
    file = fs.get_file_client("sdk/meta")
    file.create_file(metadata={"a": "b"})
    file.set_metadata({"c": "d"})
    assert file.get_file_properties().metadata == {"c": "d"}
    lease = file.acquire_lease(15)
    assert code_of(lambda: file.delete_file()).startswith("412")
    lease.release()
    file.delete_file()
    assert not file.exists()


@check("sdk: rename of a file and of a directory")
def _():
    fs.get_file_client("move/a/f").upload_data(b"x", overwrite=True)
    fs.get_directory_client("move/a").rename_directory(f"{ROOT}/move/b")
    fs.get_file_client("move/b/f").rename_file(f"{ROOT}/move/b/g")
    assert [path.name for path in fs.get_paths("move")] == ["move/b", "move/b/g"]


@check("sdk: lists in pages, start_from, delete of directories")
def _():
    for i in range(7):
        fs.get_file_client(f"list/{i}").create_file()
    pages = [[path.name for path in page] for page in fs.get_paths("list", max_results=3).by_page()]
    assert [len(page) for page in pages] == [3, 3, 1], pages
    assert [path.name for path in fs.get_paths("list", start_from="5")] == ["list/5", "list/6"]
    fs.delete_directory("list")
    assert not fs.get_directory_client("list").exists()


@check("sdk: access control, one and recursive")
def _():
    directory = fs.create_directory("acl", permissions="0750", umask="0027")
    fs.get_file_client("acl/f").create_file()
    directory.set_access_control(owner="11111111-1111-1111-1111-111111111111", permissions="rwxr-x--x")
    told = directory.get_access_control()
    assert (told["owner"], told["permissions"]) == ("11111111-1111-1111-1111-111111111111", "rwxr-x--x"), told
    result = directory.update_access_control_recursive("user:22222222-2222-2222-2222-222222222222:r-x")
    assert (result.counters.directories_successful, result.counters.files_successful, result.counters.failure_count) == (1, 1, 0)
    assert "user:22222222" in fs.get_file_client("acl/f").get_access_control()["acl"]


@check("fsspec, adlfs: write, read, walk, append block files, remove")
def _():
    import adlfs, fsspec  # noqa: F401

    abfs = fsspec.filesystem("abfs", connection_string=CONNECTION)
    data = os.urandom(12_000_000)
    with abfs.open(f"{ROOT}/adlfs/a/large", "wb") as file:
        file.write(data)
    abfs.pipe(f"{ROOT}/adlfs/a/small", b"small")
    assert abfs.cat(f"{ROOT}/adlfs/a/large") == data
    abfs.invalidate_cache()
    assert sorted(abfs.find(f"{ROOT}/adlfs")) == [f"{ROOT}/adlfs/a/large", f"{ROOT}/adlfs/a/small"], abfs.find(f"{ROOT}/adlfs")
    assert abfs.isdir(f"{ROOT}/adlfs/a") and abfs.isfile(f"{ROOT}/adlfs/a/small")
    assert [name.rsplit("/", 1)[1] for name in sorted(abfs.ls(f"{ROOT}/adlfs/a", detail=False))] == ["large", "small"]
    abfs.rm(f"{ROOT}/adlfs/a/small")
    abfs.rm(f"{ROOT}/adlfs", recursive=True)
    abfs.invalidate_cache()
    assert not abfs.exists(f"{ROOT}/adlfs/a/large")


@check("pandas over adlfs: CSV and Parquet")
def _():
    import pandas as pd

    options = {"connection_string": CONNECTION}
    frame = pd.DataFrame({"a": range(1000), "b": [str(i) for i in range(1000)]})
    frame.to_csv(f"abfs://{ROOT}/pandas/rows.csv", index=False, storage_options=options)
    assert len(pd.read_csv(f"abfs://{ROOT}/pandas/rows.csv", storage_options=options)) == 1000
    frame.to_parquet(f"abfs://{ROOT}/pandas/rows.parquet", storage_options=options)
    assert pd.read_parquet(f"abfs://{ROOT}/pandas/rows.parquet", storage_options=options)["a"].sum() == 499500


def arrow():
    """By hosts of the account where the system resolves them: at a path of the account, the SDK beneath pyarrow forgets the account in renames."""
    from pyarrow import fs as arrow_fs

    blob, dfs = urlparse(BLOB).netloc, urlparse(DFS).netloc
    if HOSTS:
        blob, dfs = f".blob.localhost:{urlparse(BLOB).port}", f".dfs.localhost:{urlparse(DFS).port}"
    return arrow_fs.AzureFileSystem(account_name=ACCOUNT, account_key=KEY, blob_storage_authority=blob, dfs_storage_authority=dfs,
                                    blob_storage_scheme="http", dfs_storage_scheme="http")


@check("pyarrow: directories, files, lists, move, delete")
def _():
    from pyarrow import fs as arrow_fs

    azure = arrow()
    azure.create_dir(f"{ROOT}/arrow/x/y", recursive=True)
    with azure.open_output_stream(f"{ROOT}/arrow/x/y/f") as file:
        file.write(b"hello")
    with azure.open_input_file(f"{ROOT}/arrow/x/y/f") as file:
        assert file.read() == b"hello"
    paths = lambda: sorted(found.path[len(ROOT):] for found in azure.get_file_info(arrow_fs.FileSelector(f"{ROOT}/arrow", recursive=True)))
    assert paths() == ["/arrow/x", "/arrow/x/y", "/arrow/x/y/f"], paths()
    if not HOSTS:
        raise ImportError(f"the system resolves no {ACCOUNT}.dfs.localhost, which pyarrow needs for a rename")
    azure.move(f"{ROOT}/arrow/x", f"{ROOT}/arrow/z")
    assert paths() == ["/arrow/z", "/arrow/z/y", "/arrow/z/y/f"], paths()
    azure.delete_file(f"{ROOT}/arrow/z/y/f")
    azure.delete_dir(f"{ROOT}/arrow/z")
    assert paths() == [], paths()


@check("pyarrow: a partitioned dataset")
def _():
    import pyarrow as pa, pyarrow.dataset as ds

    azure = arrow()
    rows = pa.table({"id": list(range(1_000)), "part": [i % 3 for i in range(1_000)]})
    ds.write_dataset(rows, f"{ROOT}/rows", format="parquet", partitioning=["part"], filesystem=azure)
    read = ds.dataset(f"{ROOT}/rows", format="parquet", partitioning=["part"], filesystem=azure)
    assert sorted(read.to_table()["id"].to_pylist()) == list(range(1_000))


@check("duckdb over fsspec: COPY TO and read_parquet")
def _():
    import duckdb, fsspec

    connection = duckdb.connect()
    connection.register_filesystem(fsspec.filesystem("abfs", connection_string=CONNECTION))
    connection.execute(f"COPY (SELECT i FROM range(1000) t(i)) TO 'abfs://{ROOT}/duck/rows.parquet'")
    assert connection.execute(f"SELECT sum(i) FROM read_parquet('abfs://{ROOT}/duck/*.parquet')").fetchone() == (499500,)


def object_store():
    return {"account_name": ACCOUNT, "account_key": KEY, "azure_storage_endpoint": BLOB, "allow_http": "true", "endpoint": BLOB}


@check("delta-rs: write, append, read")
def _():
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    uri = f"abfss://{ROOT}@{ACCOUNT}.dfs.core.windows.net/delta"
    for _ in range(3):
        write_deltalake(uri, pa.table({"a": list(range(100))}), mode="append", storage_options=object_store())
    table = DeltaTable(uri, storage_options=object_store())
    assert table.version() == 2 and len(table.to_pyarrow_table()) == 300


@check("polars: write and scan Parquet")
def _():
    import polars as pl

    uri = f"abfss://{ROOT}@{ACCOUNT}.dfs.core.windows.net/polars/rows.parquet"
    pl.DataFrame({"a": range(1000)}).write_parquet(uri, storage_options=object_store())
    assert pl.scan_parquet(uri, storage_options=object_store()).select(pl.col("a").sum()).collect().item() == 499500


fs.delete_file_system()
for name, outcome, reason in results:
    print(f"{outcome:8}{name}{': ' + reason if reason else ''}")
failed = sum(outcome == "failed" for _, outcome, _ in results)
print(f"{sum(outcome == 'passed' for _, outcome, _ in results)} passed, {failed} failed")
if failed == 0:
    print("all passed", flush=True)
# The end of an interpreter that loaded pyarrow aborts now and then.
sys.stdout.flush()
os._exit(1 if failed else 0)

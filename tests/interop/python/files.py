"""Python's azure-storage-file-share against the Files service. Each check prints a line; the end says how many failed."""
import asyncio
import hashlib
import os
import socket
import sys
import time
import traceback
from datetime import datetime, timedelta, timezone
from urllib.parse import urlparse

from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import (
    AccessPolicy,
    ContentSettings,
    NTFSAttributes,
    ResourceTypes,
    ShareClient,
    ShareFileClient,
    ShareSasPermissions,
    ShareServiceClient,
    AccountSasPermissions,
    FileSasPermissions,
    generate_account_sas,
    generate_file_sas,
    generate_share_sas,
)

ACCOUNT, KEY = os.environ["STAMP_ACCOUNT"], os.environ["STAMP_KEY"]
SHARED_KEY = {"account_name": ACCOUNT, "account_key": KEY}
# The SDK renames and copies at a host of the account only, and not every system resolves one that ends in "localhost".
PORT = urlparse(os.environ["STAMP_FILE_ENDPOINT"]).port
ENDPOINT = f"http://{ACCOUNT}.file.localhost:{PORT}"
look_up = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **options: look_up(
    "127.0.0.1" if str(host).endswith(".localhost") else host, *rest, **options
)
NAME = f"python-{os.getpid()}"
results = []


def check(name):
    """Runs the check at once."""

    def run(work):
        try:
            work()
            results.append((name, "passed", ""))
        except Exception as error:
            traceback.print_exc(limit=4)
            results.append((name, "failed", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"))

    return run


def code_of(work):
    try:
        work()
    except HttpResponseError as error:
        return f"{error.status_code} {getattr(error.error_code, 'value', error.error_code)}"
    return "none"


service = ShareServiceClient(ENDPOINT, credential=SHARED_KEY, retry_total=0)
share = service.create_share(NAME, metadata={"a": "b"}, quota=5)
LARGE = os.urandom(9_000_000)


@check("shares: properties, quota, metadata, statistics, list, not twice")
def _():
    assert share.get_share_properties().quota == 5
    share.set_share_quota(7)
    share.set_share_properties(access_tier="Hot")
    share.set_share_metadata({"c": "d"})
    told = share.get_share_properties()
    assert (told.quota, told.metadata, told.access_tier) == (7, {"c": "d"}, "Hot"), told
    assert share.get_share_stats() == 0
    assert [one.metadata for one in service.list_shares(name_starts_with=NAME, include_metadata=True)] == [{"c": "d"}]
    assert code_of(share.create_share) == "409 ShareAlreadyExists"
    assert code_of(lambda: share.create_snapshot()).startswith("501"), code_of(lambda: share.create_snapshot())


@check("shares: access policy and lease")
def _():
    expiry = datetime.now(timezone.utc) + timedelta(hours=1)
    share.set_share_access_policy({"one": AccessPolicy(permission=ShareSasPermissions(read=True, list=True), expiry=expiry)})
    assert [one.id for one in share.get_share_access_policy()["signed_identifiers"]] == ["one"]
    lease = share.acquire_lease(lease_duration=15)
    assert code_of(share.delete_share).startswith("412"), code_of(share.delete_share)
    lease.renew()
    lease.change("11111111-1111-1111-1111-111111111111")
    lease.release()


@check("service: CORS; metrics are refused by name")
def _():
    from azure.storage.fileshare import CorsRule, Metrics, RetentionPolicy

    rule = CorsRule(["http://localhost"], ["GET"], max_age_in_seconds=5)
    hours = Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=3))
    service.set_service_properties(cors=[rule])
    assert service.get_service_properties()["cors"][0].allowed_origins == "http://localhost"
    refused = code_of(lambda: service.set_service_properties(hour_metrics=hours))
    assert refused == "501 NotImplemented", refused
    service.set_service_properties(cors=[])


@check("directories: create, properties, metadata, attributes, delete")
def _():
    directory = share.create_directory("dir", metadata={"x": "1"}, file_attributes="Directory|ReadOnly")
    told = directory.get_directory_properties()
    assert told.metadata == {"x": "1"} and "ReadOnly" in str(told.file_attributes), told
    directory.set_directory_metadata({"y": "2"})
    directory.set_http_headers(file_attributes="Directory", file_creation_time=datetime(2020, 1, 2, tzinfo=timezone.utc))
    assert directory.get_directory_properties().creation_time.year == 2020
    directory.create_subdirectory("sub")
    assert code_of(directory.delete_directory) == "409 DirectoryNotEmpty"
    directory.delete_subdirectory("sub")
    assert code_of(lambda: share.create_directory("dir")) == "409 ResourceAlreadyExists"
    directory.delete_directory()
    assert not directory.exists()
    assert code_of(lambda: share.create_directory("no/where")) == "404 ParentNotFound"


@check("files: upload in ranges, download whole and in part, MD5")
def _():
    file = share.get_file_client("large")
    file.upload_file(LARGE, content_settings=ContentSettings(content_type="a/b", content_md5=bytearray(hashlib.md5(LARGE).digest())), max_concurrency=4)
    assert file.download_file(max_concurrency=4).readall() == LARGE
    assert file.download_file(offset=5_000_000, length=1000).readall() == LARGE[5_000_000:5_001_000]
    told = file.get_file_properties()
    assert (told.size, told.content_settings.content_type) == (9_000_000, "a/b")
    assert bytes(told.content_settings.content_md5) == hashlib.md5(LARGE).digest()
    small = share.get_file_client("checked")
    small.upload_file(b"hello world", validate_content=True)
    assert small.download_file(validate_content=True).readall() == b"hello world"
    assert code_of(lambda: share.get_file_client("none").get_file_properties()).startswith("404")
    assert code_of(lambda: share.get_file_client("none/none").get_file_properties()).startswith("404")


@check("files: sparse ranges, clear, resize, list of ranges")
def _():
    file = share.get_file_client("sparse")
    file.create_file(1 << 40)
    file.upload_range(b"end", (1 << 40) - 3, 3)
    file.upload_range(b"x" * 2048, 0, 2048)
    file.clear_range(512, 512)
    told = file.get_ranges()
    assert told[:2] == [{"start": 0, "end": 511}, {"start": 1024, "end": 2047}] and told[-1]["end"] == (1 << 40) - 1, told
    assert file.download_file(offset=(1 << 40) - 4, length=4).readall() == b"\0end"
    file.resize_file(100)
    assert file.get_file_properties().size == 100
    refused = code_of(lambda: file.upload_range(b"x" * 10, 95, 10))
    assert refused == "416 InvalidRange", refused
    assert [range for range in file.list_ranges()] != []


@check("files: attributes, times, metadata, headers")
def _():
    file = share.get_file_client("meta")
    when = datetime(2021, 3, 4, 5, 6, 7, tzinfo=timezone.utc)
    file.create_file(10, metadata={"k": "v"}, file_attributes=NTFSAttributes(hidden=True), file_creation_time=when, file_last_write_time=when)
    told = file.get_file_properties()
    assert told.metadata == {"k": "v"} and "Hidden" in str(told.file_attributes) and told.creation_time == when, told
    file.set_http_headers(ContentSettings(content_language="de", cache_control="no"), file_attributes="None")
    told = file.get_file_properties()
    assert (told.content_settings.content_language, told.content_settings.cache_control) == ("de", "no")
    file.set_file_metadata({"z": "1"})
    assert file.get_file_properties().metadata == {"z": "1"}
    lease = file.acquire_lease()
    assert code_of(lambda: file.upload_range(b"1234567890", 0, 10)).startswith("412")
    file.upload_range(b"1234567890", 0, 10, lease=lease)
    assert lease.break_lease() == 0
    file.delete_file()
    assert not file.exists()


@check("files: rename, of directories too, over another and with a lease")
def _():
    share.create_directory("from")
    share.get_file_client("from/a").upload_file(b"a")
    share.get_file_client("from/b").upload_file(b"b")
    moved = share.get_directory_client("from").rename_directory("to")
    assert moved.get_file_client("a").download_file().readall() == b"a"
    file = moved.get_file_client("a")
    assert code_of(lambda: file.rename_file("to/b")) == "409 ResourceAlreadyExists"
    file.rename_file("to/b", overwrite=True, metadata={"n": "1"})
    assert share.get_file_client("to/b").download_file().readall() == b"a"
    assert share.get_file_client("to/b").get_file_properties().metadata == {"n": "1"}
    assert not share.get_directory_client("from").exists()


@check("files: copy, abort of a copy that ended, range from a URL")
def _():
    source = share.get_file_client("large")
    copy = share.get_file_client("copy")
    started = copy.start_copy_from_url(source.url, metadata={"c": "1"})
    assert started["copy_status"] in ("pending", "success")
    for _ in range(100):
        if (state := copy.get_file_properties().copy.status) != "pending":
            break
        time.sleep(0.1)
    assert state == "success", state
    assert copy.download_file().readall() == LARGE
    assert code_of(lambda: copy.abort_copy(started["copy_id"])) == "409 NoPendingCopyOperation"
    token = generate_file_sas(ACCOUNT, NAME, ["large"], KEY, permission=FileSasPermissions(read=True), expiry=datetime.now(timezone.utc) + timedelta(hours=1))
    target = share.get_file_client("part")
    target.create_file(1000)
    target.upload_range_from_url(f"{source.url}?{token}", 0, 1000, 2000)
    assert target.download_file().readall() == LARGE[2000:3000]


@check("lists: pages, prefix, extended information, names as they were written")
def _():
    directory = share.create_directory("list")
    for name in ["B", "a", "ü & x", "d c", "e%20f", "g+h"]:
        directory.upload_file(name, name.encode())
    directory.create_subdirectory("Sub")
    # Directories of a page come before its files, so the order depends on the size of the pages.
    for size in (2, 5000):
        names = [one["name"] for one in directory.list_directories_and_files(results_per_page=size)]
        assert sorted(names) == sorted(["B", "a", "ü & x", "d c", "e%20f", "g+h", "Sub"]), names
    told = list(directory.list_directories_and_files(include=["timestamps", "ETag", "Attributes", "PermissionKey"], include_extended_info=True))
    assert all(one.file_id and one.last_write_time for one in told), told
    assert [one["name"] for one in directory.list_directories_and_files(name_starts_with="d")] == ["d c"]
    assert share.get_file_client("LIST/b").download_file().readall() == b"B"
    for name in ["ü & x", "d c", "e%20f", "g+h"]:
        assert directory.get_file_client(name).download_file().readall() == name.encode()


@check("names: dots at the end, dropped or kept")
def _():
    share.get_file_client("dotted.").upload_file(b"1")
    assert share.get_file_client("dotted").exists()
    kept = ShareClient(ENDPOINT, NAME, credential=SHARED_KEY, allow_trailing_dot=True)
    kept.get_file_client("kept.").upload_file(b"2")
    assert not kept.get_file_client("kept").exists()
    assert kept.get_file_client("kept.").download_file().readall() == b"2"


@check("permissions: create, get, by key and inline")
def _():
    sddl = "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513D:AI(A;;FA;;;SY)(A;;FA;;;BA)"
    key = share.create_permission_for_share(sddl)
    assert share.get_permission_for_share(key) == sddl, share.get_permission_for_share(key)
    file = share.get_file_client("allowed")
    file.create_file(1, permission_key=key)
    assert file.get_file_properties().permission_key == key
    file.set_http_headers(ContentSettings(), file_permission=sddl)
    assert file.get_file_properties().permission_key


@check("handles: list and force close, when there are none")
def _():
    directory = share.get_directory_client("list")
    assert list(directory.list_handles(recursive=True)) == []
    assert list(directory.get_file_client("B").list_handles()) == []
    assert directory.close_all_handles(recursive=True) == {"closed_handles_count": 0, "failed_handles_count": 0}
    assert directory.get_file_client("B").close_all_handles()["closed_handles_count"] == 0
    assert directory.get_file_client("B").close_handle("1")["closed_handles_count"] == 0


@check("signatures: of the account, of a share, of a policy, of a file")
def _():
    expiry = datetime.now(timezone.utc) + timedelta(hours=1)
    token = generate_account_sas(ACCOUNT, KEY, ResourceTypes(service=True, container=True, object=True), AccountSasPermissions(read=True, list=True), expiry)
    assert NAME in [one.name for one in ShareServiceClient(ENDPOINT, credential=token).list_shares()]
    token = generate_share_sas(ACCOUNT, NAME, KEY, permission=ShareSasPermissions(read=True), expiry=expiry)
    file = ShareFileClient(ENDPOINT, NAME, "list/B", credential=token)
    assert file.download_file().readall() == b"B"
    assert code_of(lambda: file.upload_range(b"C", 0, 1)) == "403 AuthorizationPermissionMismatch", code_of(lambda: file.upload_range(b"C", 0, 1))
    share.set_share_access_policy({"two": AccessPolicy(permission=ShareSasPermissions(read=True), expiry=expiry)})
    token = generate_share_sas(ACCOUNT, NAME, KEY, policy_id="two")
    assert ShareFileClient(ENDPOINT, NAME, "list/B", credential=token).download_file().readall() == b"B"
    token = generate_file_sas(ACCOUNT, NAME, ["list", "B"], KEY, permission=FileSasPermissions(write=True), expiry=expiry)
    ShareFileClient(ENDPOINT, NAME, "list/B", credential=token).upload_range(b"D", 0, 1)
    assert share.get_file_client("list/B").download_file().readall() == b"D"


@check("links are refused by name")
def _():
    assert code_of(lambda: share.get_file_client("hard").create_hardlink("list/B")).startswith("501"), code_of(
        lambda: share.get_file_client("hard").create_hardlink("list/B")
    )


@check("the client of asyncio: upload, list, download")
def _():
    from azure.storage.fileshare.aio import ShareClient as Client

    async def work():
        async with Client(os.environ["STAMP_FILE_ENDPOINT"], NAME, credential=SHARED_KEY) as client:
            file = client.get_file_client("async")
            await file.upload_file(LARGE, max_concurrency=4)
            assert await (await file.download_file(max_concurrency=4)).readall() == LARGE
            assert "async" in [one["name"] async for one in client.list_directories_and_files()]

    asyncio.run(work())


@check("shares: delete")
def _():
    share.delete_share()
    assert code_of(share.get_share_properties) == "404 ShareNotFound"


for name, state, text in results:
    print(f"{state:8}{name}{': ' + text if text else ''}")
failed = [name for name, state, _ in results if state == "failed"]
print(f"{len(results) - len(failed)} passed, {len(failed)} failed" if failed else "all passed")
sys.exit(1 if failed else 0)

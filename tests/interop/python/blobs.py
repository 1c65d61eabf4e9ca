"""The main operations of the Blob service with Python's azure-storage-blob. One line per operation; a failure ends it."""

import hashlib
import os
import sys
import time
import uuid
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    BlobType,
    ContentSettings,
    generate_blob_sas,
)

endpoint, account, key = (os.environ[name] for name in ("STAMP_BLOB_ENDPOINT", "STAMP_ACCOUNT", "STAMP_KEY"))
service = BlobServiceClient(endpoint, credential={"account_name": account, "account_key": key}, retry_total=3)
container = service.get_container_client(f"py-{uuid.uuid4()}")


def step(name):
    print(f"ok {name}", flush=True)


def expect(error_type, code, work):
    try:
        work()
    except error_type as error:
        assert error.error_code == code, f"{error.error_code} instead of {code}"
        return
    raise AssertionError(f"{code} was due")


container.create_container(metadata={"of": "container"})
assert container.get_container_properties().metadata == {"of": "container"}
expect(ResourceExistsError, "ContainerAlreadyExists", container.create_container)
assert any(one.name == container.container_name for one in service.list_containers(name_starts_with="py-"))
step("containers: create, properties, list")

content = os.urandom(9 * 1024 * 1024 + 7)
blob = container.get_blob_client("folder/ä b+c%.bin")
blob.upload_blob(content, max_concurrency=4, metadata={"a": "1"}, content_settings=ContentSettings(content_type="x/y"))
assert blob.download_blob(max_concurrency=4).readall() == content
assert blob.download_blob(offset=5_000_000, length=1000).readall() == content[5_000_000:5_001_000]
properties = blob.get_blob_properties()
assert (properties.size, properties.metadata, properties.content_settings.content_type) == (len(content), {"a": "1"}, "x/y")
expect(ResourceExistsError, "BlobAlreadyExists", lambda: blob.upload_blob(b"x"))
expect(ResourceModifiedError, "ConditionNotMet", lambda: blob.set_blob_metadata({}, etag='"0x8D0000000000000"', match_condition=__import__("azure.core", fromlist=["MatchConditions"]).MatchConditions.IfNotModified))
expect(ResourceNotFoundError, "BlobNotFound", container.get_blob_client("none").get_blob_properties)
step("block blobs: upload in parallel, download, ranges, properties, conditions")

staged = container.get_blob_client("staged")
for number, text in enumerate([b"one ", b"two ", b"three"]):
    staged.stage_block(f"{number:04}", text, validate_content=True)
staged.commit_block_list([BlobBlock(block_id=f"{number:04}") for number in (2, 0, 1)])
assert staged.download_blob().readall() == b"threeone two "
assert [block.id for block in staged.get_block_list("committed")[0]] == ["0002", "0000", "0001"]
step("blocks: stage, commit, list")

assert [item.name for item in container.walk_blobs(delimiter="/")] == ["folder/", "staged"]
pages = list(container.list_blobs(results_per_page=1).by_page())
assert sum(len(list(page)) for page in pages) == 2
step("lists: flat, by hierarchy, paged")

log = container.get_blob_client("log")
log.create_append_blob()
for number in range(5):
    answer = log.append_block(f"line {number}\n".encode())
assert answer["blob_committed_block_count"] == 5
expect(HttpResponseError, "AppendPositionConditionNotMet", lambda: log.append_block(b"x", appendpos_condition=1))
log.seal_append_blob()
expect(HttpResponseError, "BlobIsSealed", lambda: log.append_block(b"x"))
assert log.download_blob().readall().startswith(b"line 0\nline 1\n")
step("append blobs: create, append, conditions, seal")

disk = container.get_blob_client("disk")
disk.create_page_blob(1024**3)
page = os.urandom(4096)
disk.upload_page(page, offset=512 * 1024, length=4096)
disk.clear_page(offset=512 * 1024, length=512)
ranges, _ = disk.get_page_ranges()
assert ranges == [{"start": 512 * 1024 + 512, "end": 512 * 1024 + 4095}], ranges
assert disk.download_blob(offset=512 * 1024, length=4096).readall() == bytes(512) + page[512:]
disk.resize_blob(2 * 1024**3)
assert disk.get_blob_properties().size == 2 * 1024**3
step("page blobs: create, write, clear, ranges, resize")

copied = container.get_blob_client("copied")
copy = copied.start_copy_from_url(blob.url)
for _ in range(100):
    status = copied.get_blob_properties().copy.status
    if status != "pending":
        break
    time.sleep(0.1)
assert status == "success" and hashlib.md5(copied.download_blob().readall()).digest() == hashlib.md5(content).digest()
sas = generate_blob_sas(
    account, container.container_name, "staged", account_key=key, permission=BlobSasPermissions(read=True), expiry=datetime.now(timezone.utc) + timedelta(hours=1)
)
copied.upload_blob_from_url(f"{staged.url}?{sas}", overwrite=True)
assert copied.download_blob().readall() == b"threeone two "
step("copies: asynchronous, and Put Blob From URL with a SAS")

anonymous = BlobClient.from_blob_url(f"{staged.url}?{sas}")
assert anonymous.download_blob().readall() == b"threeone two "
expect(HttpResponseError, "AuthorizationPermissionMismatch", anonymous.delete_blob)
step("shared access signatures: read, and nothing else")

snapshot = staged.create_snapshot()["snapshot"]
staged.upload_blob(b"new", overwrite=True)
assert container.get_blob_client("staged", snapshot=snapshot).download_blob().readall() == b"threeone two "
lease = staged.acquire_lease(15)
expect(HttpResponseError, "LeaseIdMissing", lambda: staged.upload_blob(b"x", overwrite=True))
staged.upload_blob(b"mine", overwrite=True, lease=lease)
lease.release()
staged.set_blob_tags({"kind": "test"})
assert staged.get_blob_tags() == {"kind": "test"}
step("snapshots, leases, tags")

container.delete_blobs("copied", "log", "folder/ä b+c%.bin")
assert sorted(one.name for one in container.list_blobs()) == ["disk", "staged"]
container.delete_container()
assert not container.exists()
step("batch delete; container deleted")
print("all passed")
sys.exit(0)

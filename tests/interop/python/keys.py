"""Customer-provided keys with azure-storage-blob over HTTPS: uploads in blocks, ranges, append and page blobs, a copy under another key."""
import base64
import datetime
import hashlib
import os

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, CustomerProvidedEncryptionKey, generate_blob_sas


def new_key():
    key = os.urandom(32)
    return CustomerProvidedEncryptionKey(base64.b64encode(key).decode(), base64.b64encode(hashlib.sha256(key).digest()).decode())


account, account_key = os.environ["STAMP_ACCOUNT"], os.environ["STAMP_KEY"]
service = BlobServiceClient(
    os.environ["STAMP_BLOB_ENDPOINT"],
    credential={"account_name": account, "account_key": account_key},
    connection_verify=os.environ["STAMP_CA"],
    max_single_put_size=64 * 1024,
    max_block_size=100 * 1024,
    retry_total=0,
)
cpk, other = new_key(), new_key()
container = service.create_container("python-keys")
data = os.urandom(1_000_003)

blob = container.get_blob_client("blocks")
blob.upload_blob(data, cpk=cpk, max_concurrency=3, metadata={"m": "1"})
assert blob.download_blob(cpk=cpk).readall() == data
assert blob.download_blob(offset=777, length=300_000, cpk=cpk).readall() == data[777:300_777]
properties = blob.get_blob_properties(cpk=cpk)
assert properties.server_encrypted and properties.encryption_key_sha256 == cpk.key_hash and properties.metadata == {"m": "1"}
assert blob.exists()
for given, code in (({}, "BlobUsesCustomerSpecifiedEncryption"), ({"cpk": other}, "BlobCustomerSpecifiedEncryptionMismatch")):
    try:
        blob.download_blob(**given)
        raise AssertionError("served without the blob's key")
    except HttpResponseError as error:
        assert (error.status_code, error.error_code) == (409, code), error
blob.upload_blob(data[:10], overwrite=True, cpk=other)
assert blob.download_blob(cpk=other).readall() == data[:10]

log = container.get_blob_client("log")
log.upload_blob(data[:5000], blob_type="AppendBlob", cpk=cpk)
log.append_block(data[5000:9000], cpk=cpk)
assert log.download_blob(cpk=cpk).readall() == data[:9000]

disk = container.get_blob_client("disk")
disk.create_page_blob(4096, cpk=cpk)
disk.upload_page(data[:512], 512, 512, cpk=cpk)
disk.clear_page(0, 512, cpk=cpk)
assert disk.download_blob(cpk=cpk).readall() == bytes(512) + data[:512] + bytes(3072)
disk.resize_blob(1024, cpk=cpk)
assert disk.download_blob(cpk=cpk).readall() == bytes(512) + data[:512]

expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
sas = generate_blob_sas(account, "python-keys", "log", account_key=account_key, permission="r", expiry=expiry)
copy = container.get_blob_client("copy")
copy.upload_blob_from_url(f"{log.url}?{sas}", cpk=other, source_cpk=cpk)
assert copy.download_blob(cpk=other).readall() == data[:9000]
print("customer-provided keys: all passed")

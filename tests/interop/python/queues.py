"""The main operations of the Queue service with Python's azure-storage-queue. One line per operation; a failure ends it."""

import os
import sys
import time
import uuid
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import (
    AccessPolicy,
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    generate_queue_sas,
)

endpoint, account, key = (os.environ[name] for name in ("STAMP_QUEUE_ENDPOINT", "STAMP_ACCOUNT", "STAMP_KEY"))
service = QueueServiceClient(endpoint, credential={"account_name": account, "account_key": key}, retry_total=3)
queue = service.get_queue_client(f"py-{uuid.uuid4()}")


def step(name):
    print(f"ok {name}", flush=True)


def expect(error_type, code, work):
    try:
        work()
    except error_type as error:
        assert error.error_code == code, f"{error.error_code} instead of {code}"
        return
    raise AssertionError(f"{code} was due")


queue.create_queue(metadata={"of": "queue"})
expect(ResourceExistsError, "QueueAlreadyExists", lambda: queue.create_queue(metadata={"of": "another"}))
assert queue.get_queue_properties().metadata == {"of": "queue"}
queue.set_queue_metadata({"of": "tests"})
assert [one.metadata for one in service.list_queues(name_starts_with=queue.queue_name, include_metadata=True)] == [{"of": "tests"}]
step("queues: create, metadata, list")

texts = ["plain", "<&>\"' ä €", "x" * 65_536]
for text in texts:
    sent = queue.send_message(text)
    assert sent.id and sent.pop_receipt
assert [one.content for one in queue.peek_messages(max_messages=32)] == texts
assert queue.get_queue_properties().approximate_message_count == 3
expect(HttpResponseError, "RequestBodyTooLarge", lambda: queue.send_message("x" * 65_537))
got = list(queue.receive_messages(messages_per_page=2, visibility_timeout=60))
assert [one.content for one in got] == texts and [one.dequeue_count for one in got] == [1, 1, 1]
assert queue.receive_message() is None
step("messages: put, peek, get by pages, up to 64 KiB")

first = got[0]
updated = queue.update_message(first, content="half done", visibility_timeout=0)
expect(ResourceNotFoundError, "MessageNotFound", lambda: queue.delete_message(first.id, first.pop_receipt))
again = queue.receive_message(visibility_timeout=60)
assert (again.id, again.content, again.dequeue_count) == (first.id, "half done", 2)
queue.delete_message(again)
expect(ResourceNotFoundError, "MessageNotFound", lambda: queue.delete_message(again))
step("messages: update, pop receipts, delete")

queue.send_message("later", visibility_timeout=1, time_to_live=-1)
assert queue.receive_message() is None
for _ in range(100):
    later = queue.receive_message()
    if later:
        break
    time.sleep(0.1)
assert later.content == "later" and later.expires_on.year == 9999
queue.clear_messages()
assert queue.get_queue_properties().approximate_message_count == 0
step("messages: visible later, without an end; clear")

binary = QueueClient(
    endpoint,
    queue.queue_name,
    credential={"account_name": account, "account_key": key},
    message_encode_policy=BinaryBase64EncodePolicy(),
    message_decode_policy=BinaryBase64DecodePolicy(),
)
binary.send_message(bytes(range(256)))
assert binary.receive_message().content == bytes(range(256))
step("messages: bytes in base64")

hour = datetime.now(timezone.utc) + timedelta(hours=1)
queue.set_queue_access_policy({"adders": AccessPolicy(permission=QueueSasPermissions(add=True), expiry=hour)})
assert list(queue.get_queue_access_policy()) == ["adders"]
sas = generate_queue_sas(account, queue.queue_name, key, policy_id="adders")
adder = QueueClient(endpoint, queue.queue_name, credential=sas)
adder.send_message("by an adder")
expect(HttpResponseError, "AuthorizationPermissionMismatch", adder.receive_message)
step("shared access signatures with a stored policy: add, and nothing else")

queue.delete_queue()
expect(ResourceNotFoundError, "QueueNotFound", queue.get_queue_properties)
step("queue deleted")
print("all passed")
sys.exit(0)

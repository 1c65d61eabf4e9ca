"""The main operations of the Table service with Python's azure-data-tables. One line per operation; a failure ends it."""

import os
import sys
import uuid
from datetime import datetime, timedelta, timezone

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    TransactionOperation,
    UpdateMode,
    generate_table_sas,
)

endpoint, account, key = (os.environ[name] for name in ("STAMP_TABLE_ENDPOINT", "STAMP_ACCOUNT", "STAMP_KEY"))
credential = AzureNamedKeyCredential(account, key)
service = TableServiceClient(endpoint, credential=credential, retry_total=3)
name = f"Py{uuid.uuid4().hex}"


def step(name):
    print(f"ok {name}", flush=True)


def expect(error_type, code, work):
    try:
        work()
    except error_type as error:
        # Inserts raise an error of which this SDK has not read the body.
        assert f'"code":"{code}"' in (error.response.text() if error.response else "") or error.error_code == code, error
        return
    raise AssertionError(f"{code} was due")


table = service.create_table(name)
expect(ResourceExistsError, "TableAlreadyExists", lambda: service.create_table(name))
assert [one.name for one in service.query_tables(f"TableName eq '{name}'")] == [name]
step("tables: create, query")

moment = datetime(2026, 11, 22, 10, 20, 30, 123456, tzinfo=timezone.utc)
whole = {
    "PartitionKey": "p'ä",
    "RowKey": "r 1%",
    "text": "höhe <&> \"'",
    "small": -7,
    "large": EntityProperty(9_223_372_036_854_775_807, EdmType.INT64),
    "real": 0.1,
    "endless": float("inf"),
    "yes": True,
    "bytes": bytes(range(256)),
    "id": uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
    "moment": moment,
}
table.create_entity(whole)
seen = table.get_entity("p'ä", "r 1%")
for field, value in whole.items():
    assert seen[field] == value, f"{field}: {seen[field]!r}"
assert isinstance(seen["yes"], bool) and isinstance(seen["real"], float)
expect(ResourceExistsError, "EntityAlreadyExists", lambda: table.create_entity(whole))
expect(ResourceNotFoundError, "ResourceNotFound", lambda: table.get_entity("p", "none"))
assert set(table.get_entity("p'ä", "r 1%", select=["small"])) == {"small"}
step("entities: insert, get, every type to the last digit, select")

old = seen.metadata["etag"]
table.update_entity({"PartitionKey": "p'ä", "RowKey": "r 1%", "small": 8}, mode=UpdateMode.MERGE, etag=old, match_condition=MatchConditions.IfNotModified)
merged = table.get_entity("p'ä", "r 1%")
assert (merged["small"], merged["text"]) == (8, whole["text"])
expect(
    ResourceModifiedError,
    "UpdateConditionNotSatisfied",
    lambda: table.update_entity({"PartitionKey": "p'ä", "RowKey": "r 1%"}, mode=UpdateMode.REPLACE, etag=old, match_condition=MatchConditions.IfNotModified),
)
table.upsert_entity({"PartitionKey": "p'ä", "RowKey": "r 1%", "only": 1}, mode=UpdateMode.REPLACE)
assert set(table.get_entity("p'ä", "r 1%")) == {"PartitionKey", "RowKey", "only"}
table.delete_entity("p'ä", "r 1%")
expect(ResourceNotFoundError, "ResourceNotFound", lambda: table.get_entity("p'ä", "r 1%"))
step("entities: merge, replace, upsert, delete; If-Match")

table.submit_transaction([("create", {"PartitionKey": "t", "RowKey": f"{i:03}", "number": i}) for i in range(100)])
try:
    table.submit_transaction(
        [(TransactionOperation.UPSERT, {"PartitionKey": "t", "RowKey": "new"}), ("create", {"PartitionKey": "t", "RowKey": "057"})]
    )
    raise AssertionError("a conflict was due")
except TableTransactionError as error:
    assert (error.error_code, error.index) == ("EntityAlreadyExists", 1), (error.error_code, error.index)
expect(ResourceNotFoundError, "ResourceNotFound", lambda: table.get_entity("t", "new"))
step("transactions: 100 entities; a conflict names its index and applies nothing")

found = table.query_entities("PartitionKey eq @p and number ge @low and number lt 60", parameters={"p": "t", "low": 50}, select="number")
assert [one["number"] for one in found] == list(range(50, 60))
pages = [list(page) for page in table.query_entities("PartitionKey eq 't'", results_per_page=30).by_page()]
assert [len(page) for page in pages] == [30, 30, 30, 10]
assert [one["RowKey"] for one in table.query_entities("PartitionKey eq 't' and not (RowKey lt '098')")] == ["098", "099"]
step("queries: filters with parameters, select, pages")

sas = generate_table_sas(
    credential,
    name,
    permission=TableSasPermissions(read=True),
    expiry=datetime.now(timezone.utc) + timedelta(hours=1),
    start_pk="t",
    start_rk="010",
    end_pk="t",
    end_rk="019",
)
limited = TableClient(endpoint, name, credential=AzureSasCredential(sas))
assert [one["RowKey"] for one in limited.list_entities()] == [f"{i:03}" for i in range(10, 20)]
expect(HttpResponseError, "AuthorizationPermissionMismatch", lambda: limited.upsert_entity({"PartitionKey": "t", "RowKey": "010"}))
step("shared access signatures: a range of keys, and nothing else")

service.delete_table(name)
assert list(service.query_tables(f"TableName eq '{name}'")) == []
step("table deleted")
print("all passed")
sys.exit(0)

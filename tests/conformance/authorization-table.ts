/**
 * Who may do what, as the REST reference says it, for the test that walks all of it (authorization.slow.ts). Written from the reference and
 * not from the table of the product (packages/azure-rest/src/auth/permissions.ts): where the two differ one of them is wrong.
 *
 *   Account SAS      "Create an account SAS", table "Account SAS permissions by operation"
 *   Service SAS      "Create a service SAS", "Permissions for a directory, container, or blob", "… for a queue", "… for a table"
 *   Delegation SAS   "Create a user delegation SAS": as a service SAS; blocks with Create since 2026-04-06
 *   Role             "Authorize with Microsoft Entra ID", permissions for calling data operations, and the data actions of the built-in roles
 *                    … Data Reader (read), … Data Contributor (contribute), Storage Blob Data Owner (own)
 *   Anonymous        "Manage anonymous read access": which operations public access to blobs, or to a container, lets everybody do
 *
 * Not in these tables of the reference, and decided here: properties of a service, access policies and public access
 * at creation need the owner; tags that a request sets, tests, lists or copies need t; immutability by headers needs i.
 *
 * Columns: operation | request | headers | srt | account | service | delegation | role | anonymous
 * Letters: "cw" is one of them, "a+u" both, "-" none is enough, "*" any; "=" as in the column before.
 */
export type Service = "blob" | "queue" | "table";

export interface ExpectedRow {
  readonly operation: string;
  readonly method: string;
  /** Behind the account. `{c}` is a container, queue or table. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly resourceTypes: string;
  /** Groups of letters, one of each is needed; undefined: none is enough. */
  readonly account: readonly string[] | undefined;
  readonly service: readonly string[] | undefined;
  readonly delegation: readonly string[] | undefined;
  readonly role: "read" | "contribute" | "own";
  readonly anonymous: "none" | "blob" | "container";
}

const blob = `
ListContainers              | GET /?comp=list                                    |                        | s   | l   | -   | =  | read       | none
GetServiceProperties        | GET /?restype=service&comp=properties              |                        | s   | r   | -   | =  | own        | none
SetServiceProperties        | PUT /?restype=service&comp=properties              |                        | s   | w   | -   | =  | own        | none
GetServiceStats             | GET /?restype=service&comp=stats                   |                        | s   | r   | -   | =  | own        | none
GetUserDelegationKey        | POST /?restype=service&comp=userdelegationkey      |                        | s   | -   | -   | =  | read       | none
GetAccountInformation       | GET /?restype=account&comp=properties              |                        | sco | *   | -   | =  | read       | none
GetAccountInformation (c)   | GET /{c}?restype=account&comp=properties           |                        | sco | *   | *   | =  | read       | none
GetAccountInformation (o)   | HEAD /{c}/b?restype=account&comp=properties        |                        | sco | *   | *   | =  | read       | none
BlobBatch                   | POST /?comp=batch                                  |                        | sco | *   | -   | =  | read       | none
FindBlobsByTags             | GET /?comp=blobs&where=a%3D'b'                     |                        | o   | f   | -   | =  | own        | none
CreateContainer             | PUT /{c}?restype=container                         |                        | c   | cw  | -   | =  | contribute | none
CreateContainer, public     | PUT /{c}-p?restype=container                       | x-ms-blob-public-access: blob | c | - | - | =  | own        | none
GetContainerProperties      | GET /{c}?restype=container                         |                        | c   | r   | -   | =  | read       | container
GetContainerProperties head | HEAD /{c}?restype=container                        |                        | c   | r   | -   | =  | read       | container
GetContainerMetadata        | GET /{c}?restype=container&comp=metadata           |                        | c   | r   | -   | =  | read       | container
SetContainerMetadata        | PUT /{c}?restype=container&comp=metadata           | x-ms-lease-id: ${"0".repeat(8)}-0000-0000-0000-000000000000 | c | w | - | = | contribute | none
GetContainerAcl             | GET /{c}?restype=container&comp=acl                |                        | c   | -   | -   | =  | own        | none
SetContainerAcl             | PUT /{c}?restype=container&comp=acl                | x-ms-blob-public-access: nothing | c | - | - | = | own      | none
DeleteContainer             | DELETE /{c}-no?restype=container                   |                        | c   | d   | -   | =  | contribute | none
RestoreContainer            | PUT /{c}?restype=container&comp=undelete           |                        | c   | w   | -   | =  | contribute | none
LeaseContainer acquire      | PUT /{c}-no?restype=container&comp=lease           | x-ms-lease-action: acquire; x-ms-lease-duration: 15 | c | w | - | = | contribute | none
LeaseContainer release      | PUT /{c}-no?restype=container&comp=lease           | x-ms-lease-action: release | c | w  | -   | =  | contribute | none
LeaseContainer break        | PUT /{c}-no?restype=container&comp=lease           | x-ms-lease-action: Break | c | wd   | -   | =  | contribute | none
ListBlobs                   | GET /{c}?restype=container&comp=list               |                        | c   | l   | l   | =  | read       | container
ListBlobs, snapshots        | GET /{c}?restype=container&comp=list&include=snapshots,metadata |           | c   | l   | l   | =  | read       | container
ListBlobs, tags             | GET /{c}?restype=container&comp=list&include=metadata,Tags |                | c   | l+t | l+t | =  | own        | none
ListBlobs, tags again       | GET /{c}?restype=container&comp=list&include=metadata&include=%20tags |     | c   | l+t | l+t | =  | own        | none
ListBlobs, uncommitted      | GET /{c}?restype=container&comp=list&include=uncommittedblobs |             | c   | l   | l   | =  | read       | none
ListBlobs, deleted          | GET /{c}?restype=container&comp=list&include=deleted |                      | c   | l   | l   | =  | read       | none
ListBlobs, deleted only     | GET /{c}?restype=container&comp=list&showonly=deleted |                     | c   | l   | l   | =  | read       | none
FindBlobsByTagsInContainer  | GET /{c}?restype=container&comp=blobs&where=a%3D'b' |                       | c   | f   | f   | =  | own        | none
ContainerBlobBatch          | POST /{c}?restype=container&comp=batch             |                        | sco | *   | *   | =  | read       | none
GetBlob                     | GET /{c}/b                                         |                        | o   | r   | r   | =  | read       | blob
GetBlob, if tags            | GET /{c}/b                                         | x-ms-if-tags: a='b'    | o   | r+t | r+t | =  | own        | none
GetBlobProperties           | HEAD /{c}/b                                        |                        | o   | r   | r   | =  | read       | blob
GetBlobMetadata             | GET /{c}/b?comp=metadata                           |                        | o   | r   | r   | =  | read       | blob
GetBlockList                | GET /{c}/b?comp=blocklist                          |                        | o   | r   | r   | =  | read       | blob
GetBlockList, committed     | GET /{c}/b?comp=blocklist&blocklisttype=Committed  |                        | o   | r   | r   | =  | read       | blob
GetBlockList, uncommitted   | GET /{c}/b?comp=blocklist&blocklisttype=uncommitted |                       | o   | r   | r   | =  | read       | none
GetBlockList, all           | GET /{c}/b?comp=blocklist&blocklisttype=all        |                        | o   | r   | r   | =  | read       | none
GetPageRanges               | GET /{c}/p?comp=pagelist                           |                        | o   | r   | r   | =  | read       | blob
GetBlobTags                 | GET /{c}/b?comp=tags                               |                        | o   | t   | t   | =  | own        | none
SetBlobTags                 | PUT /{c}/b?comp=tags                               |                        | o   | t   | t   | =  | own        | none
PutBlob                     | PUT /{c}-no/b                                      | x-ms-blob-type: BlockBlob | o | cw | cw  | =  | contribute | none
PutBlob, tags               | PUT /{c}-no/b                                      | x-ms-blob-type: BlockBlob; x-ms-tags: a=b | o | cw+t | cw+t | = | own | none
PutBlob, held               | PUT /{c}-no/b                                      | x-ms-blob-type: BlockBlob; x-ms-legal-hold: true | o | cw+i | cw+i | = | own | none
PutBlob, immutable          | PUT /{c}-no/b                                      | x-ms-blob-type: BlockBlob; x-ms-immutability-policy-until-date: Wed, 25 Nov 2099 00:00:00 GMT | o | cw+i | cw+i | = | own | none
PutBlob, mode               | PUT /{c}-no/b                                      | x-ms-blob-type: BlockBlob; x-ms-immutability-policy-mode: locked | o | cw+i | cw+i | = | own | none
PutBlob, tags and held      | PUT /{c}-no/b                                      | x-ms-blob-type: BlockBlob; x-ms-tags: a=b; x-ms-legal-hold: true | o | cw+i+t | cw+i+t | = | own | none
PutBlock                    | PUT /{c}-no/b?comp=block&blockid=YQ%3D%3D          |                        | o   | w   | w   | cw | contribute | none
PutBlockList                | PUT /{c}-no/b?comp=blocklist                       |                        | o   | w   | w   | cw | contribute | none
PutBlockList, tags          | PUT /{c}-no/b?comp=blocklist                       | x-ms-tags: a=b         | o   | w+t | w+t | cw+t | own      | none
PutBlockList, held          | PUT /{c}-no/b?comp=blocklist                       | x-ms-legal-hold: true  | o   | w+i | w+i | cw+i | own      | none
PutBlockList, immutable     | PUT /{c}-no/b?comp=blocklist                       | x-ms-immutability-policy-until-date: Wed, 25 Nov 2099 00:00:00 GMT; x-ms-immutability-policy-mode: locked | o | w+i | w+i | cw+i | own | none
AppendBlock                 | PUT /{c}-no/b?comp=appendblock                     |                        | o   | aw  | aw  | =  | contribute | none
SealAppendBlob              | PUT /{c}-no/b?comp=seal                            |                        | o   | w   | w   | =  | contribute | none
PutPage                     | PUT /{c}-no/b?comp=page                            | x-ms-page-write: clear; x-ms-range: bytes=0-511 | o | w | w | = | contribute | none
PutPage, if tags            | PUT /{c}-no/b?comp=page                            | x-ms-page-write: clear; x-ms-range: bytes=0-511; x-ms-if-tags: a='b' | o | w+t | w+t | = | own | none
SetBlobMetadata             | PUT /{c}-no/b?comp=metadata                        |                        | o   | w   | w   | =  | contribute | none
SetBlobHeaders              | PUT /{c}-no/b?comp=properties                      |                        | o   | w   | w   | =  | contribute | none
SetBlobTier                 | PUT /{c}-no/b?comp=tier                            | x-ms-access-tier: Cool | o   | w   | w   | =  | contribute | none
SetBlobExpiry               | PUT /{c}-no/b?comp=expiry                          | x-ms-expiry-option: NeverExpire | o | w | w | = | contribute | none
SnapshotBlob                | PUT /{c}-no/b?comp=snapshot                        |                        | o   | cw  | cw  | =  | contribute | none
UndeleteBlob                | PUT /{c}-no/b?comp=undelete                        |                        | o   | w   | w   | =  | contribute | none
LeaseBlob acquire           | PUT /{c}-no/b?comp=lease                           | x-ms-lease-action: acquire; x-ms-lease-duration: 15 | o | w | w | = | contribute | none
LeaseBlob renew             | PUT /{c}-no/b?comp=lease                           | x-ms-lease-action: renew | o | w   | w   | =  | contribute | none
LeaseBlob change            | PUT /{c}-no/b?comp=lease                           | x-ms-lease-action: change | o | w  | w   | =  | contribute | none
LeaseBlob release           | PUT /{c}-no/b?comp=lease                           | x-ms-lease-action: release | o | w | w   | =  | contribute | none
LeaseBlob break             | PUT /{c}-no/b?comp=lease                           | x-ms-lease-action: break | o | wd  | wd  | =  | contribute | none
DeleteBlob                  | DELETE /{c}-no/b                                   |                        | o   | d   | d   | =  | contribute | none
DeleteBlob, no type         | DELETE /{c}-no/b?deletetype=                       |                        | o   | d   | d   | =  | contribute | none
DeleteBlob, snapshot        | DELETE /{c}-no/b?snapshot=2026-01-01T00%3A00%3A00.0000000Z |                | o   | d   | d   | =  | contribute | none
DeleteBlob, version         | DELETE /{c}-no/b?versionid=2026-01-01T00%3A00%3A00.0000000Z |               | o   | x   | x   | =  | own        | none
DeleteBlob, permanent       | DELETE /{c}-no/b?snapshot=2026-01-01T00%3A00%3A00.0000000Z&deletetype=permanent | | o | y | y | = | own        | none
DeleteBlob, permanent (v)   | DELETE /{c}-no/b?versionid=2026-01-01T00%3A00%3A00.0000000Z&deletetype=permanent | | o | y | y | = | own      | none
SetImmutabilityPolicy       | PUT /{c}-no/b?comp=immutabilitypolicies            | x-ms-immutability-policy-until-date: Wed, 25 Nov 2099 00:00:00 GMT | o | i | i | = | own | none
DeleteImmutabilityPolicy    | DELETE /{c}-no/b?comp=immutabilitypolicies         |                        | o   | i   | i   | =  | own        | none
SetLegalHold                | PUT /{c}-no/b?comp=legalhold                       | x-ms-legal-hold: true  | o   | i   | i   | =  | own        | none
CopyBlob                    | PUT /{c}-no/b                                      | x-ms-copy-source: {url} | o  | cw  | cw  | =  | contribute | none
CopyBlob, tags              | PUT /{c}-no/b                                      | x-ms-copy-source: {url}; x-ms-tags: a=b | o | cw+t | cw+t | = | own | none
CopyBlob, held              | PUT /{c}-no/b                                      | x-ms-copy-source: {url}; x-ms-legal-hold: true | o | cw+i | cw+i | = | own | none
CopyBlobFromUrl             | PUT /{c}-no/b                                      | x-ms-copy-source: {url}; x-ms-requires-sync: true | o | cw | cw | = | contribute | none
CopyBlobFromUrl, held       | PUT /{c}-no/b                                      | x-ms-copy-source: {url}; x-ms-requires-sync: true; x-ms-legal-hold: true | o | cw+i | cw+i | = | own | none
CopyBlobFromUrl, its tags   | PUT /{c}-no/b                                      | x-ms-copy-source: {url}; x-ms-requires-sync: true; x-ms-copy-source-tag-option: COPY | o | cw+t | cw+t | = | own | none
PutBlobFromUrl              | PUT /{c}-no/b                                      | x-ms-copy-source: {url}; x-ms-blob-type: BlockBlob | o | cw | cw | = | contribute | none
PutBlobFromUrl, held        | PUT /{c}-no/b                                      | x-ms-copy-source: {url}; x-ms-blob-type: BlockBlob; x-ms-legal-hold: false | o | cw+i | cw+i | = | own | none
PutBlockFromUrl             | PUT /{c}-no/b?comp=block&blockid=YQ%3D%3D          | x-ms-copy-source: {url} | o  | w   | w   | cw | contribute | none
AppendBlockFromUrl          | PUT /{c}-no/b?comp=appendblock                     | x-ms-copy-source: {url} | o  | aw  | aw  | =  | contribute | none
PutPageFromUrl              | PUT /{c}-no/b?comp=page                            | x-ms-copy-source: {url}; x-ms-page-write: update; x-ms-range: bytes=0-511; x-ms-source-range: bytes=0-511 | o | w | w | = | contribute | none
AbortCopyBlob               | PUT /{c}-no/b?comp=copy&copyid=1                   | x-ms-copy-action: abort | o  | w   | w   | =  | contribute | none
`;

const queue = `
ListQueues                  | GET /?comp=list                                    |                        | s   | l   | -   | =  | read       | none
GetServiceProperties        | GET /?restype=service&comp=properties              |                        | s   | r   | -   | =  | own        | none
SetServiceProperties        | PUT /?restype=service&comp=properties              |                        | s   | w   | -   | =  | own        | none
GetServiceStats             | GET /?restype=service&comp=stats                   |                        | s   | r   | -   | =  | own        | none
GetUserDelegationKey        | POST /?restype=service&comp=userdelegationkey      |                        | s   | -   | -   | =  | read       | none
CreateQueue                 | PUT /{c}                                           |                        | c   | cw  | -   | =  | contribute | none
DeleteQueue                 | DELETE /{c}-no                                     |                        | c   | d   | -   | =  | contribute | none
GetQueueMetadata            | GET /{c}?comp=metadata                             |                        | c   | r   | r   | =  | read       | none
SetQueueMetadata            | PUT /{c}?comp=metadata                             |                        | c   | w   | -   | =  | contribute | none
GetQueueAcl                 | GET /{c}?comp=acl                                  |                        | c   | -   | -   | =  | own        | none
SetQueueAcl                 | PUT /{c}-no?comp=acl                               |                        | c   | -   | -   | =  | own        | none
PutMessage                  | POST /{c}-no/messages                              |                        | o   | a   | a   | =  | contribute | none
GetMessages                 | GET /{c}/messages                                  |                        | o   | p   | p   | =  | contribute | none
PeekMessages                | GET /{c}/messages?peekonly=true                    |                        | o   | r   | r   | =  | read       | none
ClearMessages               | DELETE /{c}/messages                               |                        | o   | d   | -   | =  | contribute | none
UpdateMessage               | PUT /{c}/messages/00000000-0000-8000-8000-000000000000?popreceipt=a&visibilitytimeout=0 | | o | u | u | = | contribute | none
DeleteMessage               | DELETE /{c}/messages/00000000-0000-8000-8000-000000000000?popreceipt=a | | o   | p   | p   | =  | contribute | none
`;

const table = `
GetServiceProperties        | GET /?restype=service&comp=properties              |                        | s   | r   | -   | =  | own        | none
SetServiceProperties        | PUT /?restype=service&comp=properties              |                        | s   | w   | -   | =  | own        | none
GetServiceStats             | GET /?restype=service&comp=stats                   |                        | s   | r   | -   | =  | own        | none
GetUserDelegationKey        | POST /?restype=service&comp=userdelegationkey      |                        | s   | -   | -   | =  | read       | none
QueryTables                 | GET /Tables                                        |                        | c   | l   | -   | =  | read       | none
GetTable                    | GET /Tables('{c}')                                 |                        | c   | l   | -   | =  | read       | none
CreateTable                 | POST /Tables                                       |                        | c   | cw  | -   | =  | contribute | none
DeleteTable                 | DELETE /Tables('{c}no')                            |                        | c   | d   | -   | =  | contribute | none
GetTableAcl                 | GET /{c}?comp=acl                                  |                        | c   | -   | -   | =  | own        | none
SetTableAcl                 | PUT /{c}no?comp=acl                                |                        | c   | -   | -   | =  | own        | none
QueryEntities               | GET /{c}()                                         |                        | o   | r   | r   | =  | read       | none
GetEntity                   | GET /{c}(PartitionKey='a',RowKey='b')              |                        | o   | r   | r   | =  | read       | none
InsertEntity                | POST /{c}                                          |                        | o   | a   | a   | =  | contribute | none
UpdateEntity                | PUT /{c}(PartitionKey='a',RowKey='b')              | if-match: *            | o   | u   | u   | =  | contribute | none
MergeEntity                 | PATCH /{c}(PartitionKey='a',RowKey='b')            | if-match: *            | o   | u   | u   | =  | contribute | none
MergeEntity, tunnelled      | POST /{c}(PartitionKey='a',RowKey='b')             | if-match: *; x-http-method: MERGE | o | u | u | = | contribute | none
InsertOrReplaceEntity       | PUT /{c}(PartitionKey='a',RowKey='b')              |                        | o   | a+u | a+u | =  | contribute | none
InsertOrMergeEntity         | PATCH /{c}(PartitionKey='a',RowKey='b')            |                        | o   | a+u | a+u | =  | contribute | none
DeleteEntity                | DELETE /{c}(PartitionKey='a',RowKey='b')           | if-match: *            | o   | d   | d   | =  | contribute | none
EntityGroupTransaction      | POST /$batch                                       |                        | o   | raud | raud | = | read       | none
`;

const anyLetter = "rwdlacxyupftmeoi";

function groupsOf(text: string): readonly string[] | undefined {
  if (text === "-") return undefined;
  return text === "*" ? [anyLetter] : text.split("+");
}

function rowOf(line: string): ExpectedRow {
  const cells = line.split("|").map((cell) => cell.trim());
  const [operation = "", request = "", headers = "", resourceTypes = "", account = "", service = "", last = "", role = "", anonymous = ""] =
    cells;
  if (cells.length !== 9) throw new Error(`not nine cells: ${line}`);
  const space = request.indexOf(" ");
  const pairs = headers
    .split(";")
    .filter((one) => one.trim() !== "")
    .map((one): [string, string] => [one.slice(0, one.indexOf(":")).trim(), one.slice(one.indexOf(":") + 1).trim()]);
  return {
    operation,
    method: request.slice(0, space),
    target: request.slice(space + 1),
    headers: Object.fromEntries(pairs),
    resourceTypes,
    account: groupsOf(account),
    service: groupsOf(service),
    delegation: groupsOf(last === "=" ? service : last),
    role: role as ExpectedRow["role"],
    anonymous: anonymous as ExpectedRow["anonymous"],
  };
}

const rowsOf = (text: string): ExpectedRow[] => text.trim().split("\n").map(rowOf);

export const expectedRows: Readonly<Record<Service, readonly ExpectedRow[]>> = {
  blob: rowsOf(blob),
  queue: rowsOf(queue),
  table: rowsOf(table),
};

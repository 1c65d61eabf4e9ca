/**
 * The REST API of Azure Storage: parsing of requests, signatures, conditions, XML, OData filters and error codes. Pure;
 * knows nothing of storage. A parser returns `Parsed`: a typed request, or a `RestError` with the service's code. The
 * caller owes: the time, and comparing a recognized operation's permissions with the caller's rights (`authorization`).
 */
export { type BearerRole, bearerRoles, mayAs, type OperationAuthorization, type SignedResource } from "./auth/authorization.ts";
export { checkSasOperation, checkSasSignature, checkSasUse, responseOverrides, type SigningKeys } from "./auth/check-sas.ts";
export {
  type DelegationKeyFields,
  delegationKeysOf,
  delegationKeyXml,
  delegationSecretBytes,
  deriveDelegationKey,
  parseDelegationKeyRequest,
} from "./auth/delegation-key.ts";
export { blobAuthorizationOf, queueAuthorizationOf, roleOfLetter, tableAuthorizationOf } from "./auth/permissions.ts";
export { hasSas, parseSas, type Sas } from "./auth/sas.ts";
export { checkSignature, clockSkewMs, parseAuthorization, type SharedKeyAuthorization, signRequest } from "./auth/shared-key.ts";
export { parseSignedIdentifiers, type SasTerms, type SignedIdentifier, signedIdentifiersXml, termsOf } from "./auth/signed-identifiers.ts";
export { claimsOfToken, makeToken, verifyToken } from "./auth/token.ts";
export { fromBase64, toBase64 } from "./base64.ts";
export { type BatchAnswer, type BatchRequest, batchAnswerText, batchBytesMax, parseBatch, parseBatchBoundary } from "./blob/batch.ts";
export { BlockListReader, blockListBytesMax } from "./blob/block-list-xml.ts";
export {
  type CustomerKey,
  encryptedUnderHeaders,
  isScopeName,
  parseContainerScope,
  parseCustomerKeys,
  parseScope,
  requestEncryptedHeaders,
} from "./blob/encryption-headers.ts";
export { conditionHeaders } from "./blob/header-groups.ts";
export { type LeaseHeaders, parseLease } from "./blob/lease-headers.ts";
export { decodeMarker, encodeMarker, encodeMarkerWithin, parseListQuery } from "./blob/list-query.ts";
export {
  blobPrefixXml,
  blockListXml,
  containerVersionOf,
  containerVersionText,
  type ListedBlobProperties,
  listBlobsXml,
  listContainersXml,
  listedBlobXml,
  untellable,
} from "./blob/lists-xml.ts";
export { type BlobOperationName, blobOperationNames, blobOperations } from "./blob/operation-rows.ts";
export { type BlobRequest, blobRequests, blobRequestTitle, recognizeBlob } from "./blob/operations.ts";
export {
  checkPageBlobLength,
  parseCount,
  parseNewBlobType,
  parsePageRange,
  parseSequenceConditions,
  parseSequenceNumberChange,
  putPageBytesMax,
  type SequenceConditionHeaders,
} from "./blob/page-headers.ts";
export { pageListXml } from "./blob/page-list-xml.ts";
export { type BlobResource, checkNames, olderBlob, parseBlobResource, signedBlobResource } from "./blob/resource.ts";
export { type AllowedSource, allowedSource, parseSourcePattern } from "./blob/sources/allowed-sources.ts";
export {
  type CopySourceUrl,
  copyFromUrlBytesMax,
  parseCopySource,
  parseSourceConditions,
  parseSourceDigests,
  parseSourceRange,
  urlOf,
} from "./blob/sources/copy-headers.ts";
export {
  parseSourceAnswer,
  parseSourcePages,
  type SourceAnswer,
  type SourcePages,
  sourceError,
  sourcePageListBytesMax,
  sourcePageRangesMax,
  sourceRequestHeaders,
  toldBySource,
} from "./blob/sources/source-answers.ts";
export {
  parseExpiry,
  parseNewBlobState,
  parsePreviousSnapshot,
  parseStamps,
  requiredImmutability,
  requiredLegalHold,
  requiredTier,
} from "./blob/state-headers.ts";
export { foundByTagsXml, parseTagsXml, tagsBytesMax, tagsXml } from "./blob/tags.ts";
export { checkUnsupported } from "./blob/unsupported.ts";
export { type ConditionHeaders, fitsIfRange, parseConditions, refuseConditions, uncombined } from "./conditions.ts";
export { formatIso, formatIsoMicros, formatRfc1123, parseIso, parseRfc1123 } from "./dates.ts";
export { canonicalId, isId, listsText } from "./dfs/access/access-list.ts";
export { grants, type Identity, mayChangeGroup, mayChangeLists, mayChangeOwner } from "./dfs/access/decide.ts";
export { allows, isPathOperation, mayEmpty, mayList, type PathOperationName } from "./dfs/access/needs.ts";
export {
  changedPathAccess,
  newPathAccess,
  type PathAccess,
  type PathKind,
  parsePathAccess,
  pathAccessText,
  permissionsText,
  recursivelyChanged,
  superuserId,
} from "./dfs/access/path-access.ts";
export { blobPathAuthorization, dataLakeAuthorizationOf, pathOperationOf } from "./dfs/authorization.ts";
export { dataLakeError, dataLakeErrorJson } from "./dfs/errors.ts";
export { changedPathsJson, type FailedPath, filesystemsJson, pathsJson, type ShownFilesystem, type ShownPath } from "./dfs/lists-json.ts";
export { type DataLakeOperationName, dataLakeOperationNames, dataLakeOperations } from "./dfs/operation-rows.ts";
export { asksForXml, isDataLakeRequest } from "./dfs/operations.ts";
export type { ContentHeaders, Ownership } from "./dfs/path-headers.ts";
export { directoryMark, isDirectoryMark, type PathProperties, propertiesText } from "./dfs/properties.ts";
export { type DataLakeRequest, type DataLakeRequests, parseDataLake, type RecursiveChange } from "./dfs/requests.ts";
export { canonicalDirectory, checkDataLakeNames, type DataLakeResource, parseDataLakeResource, withoutSlashes } from "./dfs/resource.ts";
export { refusedEmptyHeaders, refusedEmptyParameters, withoutEmptyValues } from "./empty-values.ts";
export { fileError } from "./file/errors.ts";
export {
  fileBytesMax,
  now as timeNow,
  parseFileContent,
  parseFileLength,
  parseFileWrite,
  parseKeepsWriteTime,
  parseQuota,
  parseShareTier,
  parseSmbProperties,
  parseWriteRange,
  putRangeBytesMax,
  type SmbProperties,
  shareQuotaGibMax,
} from "./file/file-headers.ts";
export {
  type EntryListEcho,
  entriesXml,
  handlesXml,
  type ListedEntry,
  type ListedHandle,
  type ListedShare,
  rangesXml,
  type ShareListEcho,
  shareStatsXml,
  sharesXml,
} from "./file/lists-xml.ts";
export { type FileOperationName, fileAuthorizationOf, fileOperationNames, recognizeFile } from "./file/operations.ts";
export { checkPermissionFormat, isSddl } from "./file/permissions.ts";
export { checkShareName, type FileResource, namesOfPath, parseFileResource } from "./file/resource.ts";
export { isHostPattern, isOwnHost } from "./forwarded/host-names.ts";
export { isTrusted, type Network, parseNetwork, seenThroughProxies } from "./forwarded/trusted-proxies.ts";
export {
  type ByteRange,
  type ContentProperties,
  type HttpHeaders,
  type PublicAccess,
  parseBlockId,
  parseBoolean,
  parseContentLength,
  parseContentProperties,
  parseDigest,
  parseMetadata,
  parsePublicAccess,
  parseRange,
  parseTimeout,
  withTypeCleared,
} from "./headers.ts";
export { canonicalPath, checkBlobName, checkContainerName, hasRefusedCharacter, isAccountName } from "./names.ts";
export {
  dataLakeErrorBody,
  fileRequestTitle,
  type OtherRequest,
  type OtherService,
  otherRequests,
  otherRequestTitle,
  otherSuffixes,
  refuseOtherService,
} from "./other-services.ts";
export {
  checkMessageText,
  listQueuesXml,
  messageBodyBytesMax,
  messagesXml,
  type ShownMessage,
  textOfMessage,
} from "./queue/messages-xml.ts";
export { type QueueOperationName, queueOperationNames, queueRequests, queueRequestTitle, recognizeQueue } from "./queue/operations.ts";
export {
  checkMessageCount,
  checkPutTimes,
  checkTakeTimeout,
  parseMessageCount,
  parsePopReceipt,
  parsePutTimes,
  parseTakeTimeout,
  parseUpdateTimeout,
  takeTimeoutSecondsDefault,
  timeToLiveSecondsDefault,
} from "./queue/query.ts";
export { checkQueueName, parseQueueResource, type QueueResource, signedQueueResource } from "./queue/resource.ts";
export {
  blobHeaders,
  containerHeaders,
  crc64Text,
  etagAndTime,
  metadataHeaders,
  type ResponseHeaders,
  writtenHeaders,
} from "./responses.ts";
export {
  allParsed,
  badHeader,
  badQuery,
  errorBody,
  notImplemented,
  type Parsed,
  parsed,
  type RestError,
  type RestErrorOptions,
  reasonPhraseOf,
  rejected,
  restError,
  restErrorOfService,
} from "./rest-error.ts";
export {
  type ReplicationStatus,
  refuseSecondary,
  refuseStatistics,
  refuseWriteAtSecondary,
  secondaryName,
  serviceStatisticsXml,
} from "./secondary.ts";
export { corsHeaders, preflightHeaders } from "./service-properties/cors.ts";
export {
  type CorsRule,
  decodeServiceProperties,
  defaultServiceProperties,
  encodeServiceProperties,
  type ServiceName,
  type ServiceProperties,
  type StaticWebsite,
  serviceNames,
  unreadableProperties,
} from "./service-properties/service-properties.ts";
export { parseServiceProperties, servicePropertiesBytesMax, servicePropertiesXml } from "./service-properties/service-properties-xml.ts";
export { entityContinuation, parseEntityContinuation, parseTableContinuation, tableContinuation } from "./table/continuation.ts";
export { entityEtag, timestampOfEtag } from "./table/edm.ts";
export { type ByteSink, EntitiesBytes, type StoredEntity, type StoredProperty } from "./table/entity-bytes.ts";
export {
  checkEntity,
  EntitiesJson,
  type EntityBody,
  entityJson,
  entityPath,
  type JsonForm,
  type MetadataLevel,
  parseEntity,
  parseTableName,
  tableJson,
  tablePath,
  tablesJson,
} from "./table/entity-json.ts";
export { filterStepsMax, parseFilter } from "./table/filter.ts";
export { checkContentType, jsonContentType, odataErrorBody, parseMetadataLevel, parsePrefer } from "./table/format.ts";
export { checkTableName } from "./table/names.ts";
export { recognizeTable, type TableOperationName, tableConditions, tableOperationNames } from "./table/operations.ts";
export { parseTableQuery, tablePageMax } from "./table/query.ts";
export { parseTableResource, signedTableResource, type TableResource } from "./table/resource.ts";
export {
  parseTransaction,
  type TransactionAnswer,
  type TransactionRequest,
  transactionBytesMax,
  transactionChangesMax,
  transactionResponse,
} from "./table/transaction.ts";
export {
  accountOfHost,
  decodePercent,
  decodeUtf8,
  parseQuery,
  parseTarget,
  type Query,
  queryValue,
  type Target,
  unknownAccount,
} from "./target.ts";
export {
  behavesAs,
  bodyLimitsOf,
  etagHeader,
  isNewer,
  isVersion,
  lettersThatCount,
  newestVersion,
  parseVersion,
  unversioned,
} from "./version.ts";
export { XmlTreeReader } from "./xml/xml.ts";
export { escapeXml } from "./xml/xml-text.ts";

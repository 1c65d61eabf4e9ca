/**
 * Query parameters that may stand in a query once. Stamp reads one value of each: a second one would be ignored, and with it what its
 * sender meant, or what somebody appended to a signed URL. Parameters that nobody reads may be repeated; `include` is a list.
 */

/** Names of the parameters of a shared access signature, in lower case. */
export const sasParameters = [
  "sv",
  "ss",
  "srt",
  "sr",
  "sp",
  "st",
  "se",
  "si",
  "sip",
  "spr",
  "sig",
  "ses",
  "sdd",
  "tn",
  "spk",
  "srk",
  "epk",
  "erk",
  "rscc",
  "rscd",
  "rsce",
  "rscl",
  "rsct",
  "skoid",
  "sktid",
  "skt",
  "ske",
  "sks",
  "skv",
  "saoid",
  "suoid",
  "scid",
  "skdutid",
  "sduoid",
  "srh",
  "srq",
] as const;

/** Names in lower case, as `parseQuery` keeps them. */
export const singleParameters: ReadonlySet<string> = new Set([
  ...sasParameters,
  // Every service
  "comp",
  "restype",
  "timeout",
  "api-version",
  "prefix",
  "marker",
  "maxresults",
  // Blob
  "delimiter",
  "startfrom",
  "endbefore",
  "showonly",
  "snapshot",
  "versionid",
  "prevsnapshot",
  "blockid",
  "blocklisttype",
  "copyid",
  "deletetype",
  "where",
  // Data Lake Storage and Files
  "directory",
  "sharesnapshot",
  "prevsharesnapshot",
  // Queue
  "popreceipt",
  "visibilitytimeout",
  "messagettl",
  "numofmessages",
  "peekonly",
  // Table
  "$filter",
  "$select",
  "$top",
  "$format",
  "nexttablename",
  "nextpartitionkey",
  "nextrowkey",
]);

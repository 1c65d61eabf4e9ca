/** Declares how `/metrics` tells the facts of a front-end. */
import { gateMetrics } from "@stamp/admission";
import { allLabelled, counter, gauge, histogram, insideFacts, type Metrics } from "@stamp/base";
import { hedgeMetrics } from "@stamp/stream-client";

const fe = "front_end";

/** Metrics of the door of one service. */
const doorMetrics: Metrics = {
  requests: counter(`${fe}_requests_total`, "Requests that arrived."),
  inProgress: gauge(`${fe}_requests_in_progress`, "Requests that have arrived and not ended."),
  refusedBusy: counter(`${fe}_refused_requests_total`, "Requests that were answered 503 by this front-end, to protect others."),
  clientErrors: counter(`${fe}_client_errors_total`, "Requests that were answered 4xx."),
  serverErrors: counter(`${fe}_server_errors_total`, "Requests that were answered 5xx."),
  took: histogram(
    `${fe}_request_duration_seconds`,
    "From the arrival of a request to the head of its answer; with the upload of a body, without the download of one.",
    ["class", "code"],
  ),
  "byOperation.*": counter(`${fe}_operations_total`, "Requests that were answered, by operation of the REST reference.", {
    operation: "*",
  }),
};

export const frontEndMetrics: Metrics = {
  mapVersion: gauge(`${fe}_map_version`, "Version of the partition map that it has."),
  mapAgeMs: gauge(`${fe}_map_age_seconds`, "Since it heard last that this version is right."),
  ranges: gauge(`${fe}_ranges`, "Ranges of that map."),
  calls: histogram(
    `${fe}_partition_call_duration_seconds`,
    "Calls to partition servers until there was an answer, with the attempts at ranges that moved; a request makes one or more.",
  ),
  retries: counter(`${fe}_retries_total`, "Calls to partition servers that were sent again."),
  containerRowReads: counter(
    `${fe}_container_row_reads_total`,
    "Reads of the rows of containers, tables and queues, for one request or several.",
  ),
  uploadBytes: gauge(`${fe}_upload_buffer_bytes`, "Bytes of uploads in memory."),
  uploadRoomBytes: gauge(`${fe}_upload_room_bytes`, "Bytes of large uploads that are let in at once; fewer while small requests suffer."),
  downloadBytes: gauge(`${fe}_download_buffer_bytes`, "Bytes in memory of downloads, and of lists and queries that are being sent."),
  documentBytes: gauge(`${fe}_document_buffer_bytes`, "Bytes in memory of bodies that are read whole: block lists, batches, entities."),
  bytesWaiting: gauge(`${fe}_buffer_waiting_requests`, "Requests that wait for room in the buffers of uploads or downloads."),
  bytesRefused: counter(
    `${fe}_buffer_refused_requests_total`,
    "Requests refused because they waited too long for room in the buffers of uploads or downloads.",
  ),
  "signals.listeners": gauge(`${fe}_signal_listeners`, "Listeners of signals (`stamp.v1.Signals`) connected now."),
  "signals.published": counter(`${fe}_signals_published_total`, "Signals that were published here."),
  geoStaleEpochs: counter(
    `${fe}_geo_stale_epochs_total`,
    "Rows and bytes of another stamp that were refused: shipped under a role epoch that is not in force here.",
  ),
  ...insideFacts("codedReads", hedgeMetrics(fe)),
  "faultRules.rules": gauge(`${fe}_fault_rules`, "Rules that make requests fail or wait on purpose (docs/guides/faults.md)."),
  "faultRules.hits": counter(`${fe}_fault_rule_hits_total`, "Requests that failed or waited by such a rule."),
  "fileHandles.opened": counter(`${fe}_file_handles_opened_total`, "Handles of files of shares that gateways opened by this front-end."),
  "fileHandles.closed": counter(
    `${fe}_file_handles_closed_total`,
    "Times that a handle, or all of a file, were closed by a gateway or by Force Close Handles.",
  ),
  "fileHandles.sessionsEnded": counter(
    `${fe}_file_handle_sessions_ended_total`,
    "Times that handles of a session whose end is recorded were closed at one file.",
  ),
  "fileHandles.filesRemoved": counter(`${fe}_file_handle_removals_total`, "Files that went with their last handle."),
  "fileHandles.refused.*": counter(
    `${fe}_file_handle_refusals_total`,
    "Operations on a file, by REST or by a handle, that met handles or locks of others: each attempt counts.",
    { code: "*" },
  ),
  copies: gauge(`${fe}_copies_in_progress`, "Copies of blobs from elsewhere that are under way."),
  ...insideFacts("admission", gateMetrics(fe)),
  "admission.refusedByShare": counter(
    `${fe}_admission_refused_by_share_total`,
    "Requests refused because too many of the same account were in progress.",
  ),
  ...allLabelled(doorMetrics, { service: "blob" }),
  ...insideFacts("queue", doorMetrics, { service: "queue" }),
  ...insideFacts("table", doorMetrics, { service: "table" }),
  ...insideFacts("dfs", doorMetrics, { service: "dfs" }),
  ...insideFacts("file", doorMetrics, { service: "file" }),
};

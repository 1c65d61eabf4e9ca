/** Configuration of a partition server: each key also by environment (STAMP_<UPPER_SNAKE>) and flag (--kebab-case). */
import type { GateOptions } from "@stamp/admission";
import { z } from "zod";

const mebibyte = 1024 * 1024;
const bytes = (fallback: number) => z.number().int().min(4_096).default(fallback);
const count = (fallback: number) => z.number().int().min(1).default(fallback);
const milliseconds = (fallback: number) => z.number().int().min(1).default(fallback);

export const partitionServerConfigSchema = z.object({
  name: z.string().min(1).default("partition-server-1").describe("Name of this process, unique inside the stamp"),
  listen: z.string().default("127.0.0.1:0").describe("host:port to listen at"),
  advertise: z.string().optional().describe("Address that others use, when it is not the one listened at"),
  lockService: z.string().default("127.0.0.1:7100").describe("Address of the lock service; of several, separated by commas"),
  dataDir: z.string().default(".stamp/partition-server-1").describe("Folder of this process's identity"),
  masterKey: z
    .string()
    .default("")
    .describe(
      "Master key that seals secrets of accounts at rest, 32 bytes in base64; better a file or a command. None: they are stored openly",
    ),
  masterKeyFile: z.string().default("").describe("File with it, instead of masterKey; a change is taken within a second"),
  masterKeyMake: z
    .boolean()
    .default(false)
    .describe("Make masterKeyFile when it is not there; only where all partition servers see the same file"),
  masterKeyCommand: z.string().default("").describe("Command of /bin/sh that prints it, instead of masterKey"),
  masterKeyPreviousFile: z
    .string()
    .default("")
    .describe("File with the master key before, which still opens, by default masterKeyFile with .previous; it need not exist"),
  leaseTermMs: milliseconds(6_000).describe("Term of this server's lease"),
  leaseMarginMs: milliseconds(1_000).describe("How long before its end the lease is no longer relied on"),
  leaseRenewEveryMs: milliseconds(500).describe("Time between renewals of the lease"),
  extentTargetBytes: bytes(64 * mebibyte).describe("Size at which an extent of a stream is left for the next one"),
  memoryTableBytesMax: bytes(32 * mebibyte).describe("Commits of one range in memory; beyond, a checkpoint is written"),
  memoryTablesBytesMax: bytes(256 * mebibyte).describe(
    "Commits of all ranges of this server in memory; beyond, those of the range that has most are written out, beyond twice as much commits wait",
  ),
  logBytesMax: bytes(128 * mebibyte).describe("Commit log of one range since its last checkpoint; beyond, a checkpoint is written"),
  rowCacheBytesMax: z
    .number()
    .int()
    .min(4_096)
    .optional()
    .describe(
      "Row data cache: blocks of checkpoints in memory, of all ranges of this server; by default an eighth of the machine's memory, 64 MiB to 8 GiB",
    ),
  indexCacheBytesMax: bytes(192 * mebibyte).describe(
    "Index cache: block indexes and bloom filters of checkpoints in memory, of all ranges of this server; about 7 bytes per KiB of rows",
  ),
  checkpointsMax: z.number().int().min(2).max(64).default(8).describe("Checkpoints that a read may meet before they are merged"),
  collectEveryMs: milliseconds(60_000).describe(
    "Time between two passes that give back what nothing refers to; a range that did not change is left out",
  ),
  pinTermMs: milliseconds(60_000).describe(
    "Bytes of an upload keep their extent for so long unless the front-end renews that, which it does as long as the upload goes on: at least twice as long as a request takes behind its last byte",
  ),
  collectGoneMs: milliseconds(180_000).describe(
    "Rows inside a deleted container, table or queue are deleted when it was found gone for so long, by the wall clock, over moves and restarts: longer than requests to it take behind their last byte",
  ),
  collectRowsPerSecond: z.number().int().min(1).default(20_000).describe("Rows that a pass looks at in a second"),
  collectRewriteBelow: z
    .number()
    .min(0)
    .max(1)
    .default(0.4)
    .describe("A full extent of blob data of which a smaller share lives is given back: what lives is copied to the end; 0: never"),
  collectRewriteBytesPerSecond: bytes(16 * mebibyte).describe("Blob data that a pass copies out of mostly dead extents in a second"),
  geoRolesEveryMs: z
    .number()
    .int()
    .min(0)
    .default(2_000)
    .describe(
      "How often the partition manager is asked which accounts have a second stamp, in milliseconds; 0: never, and nothing is shipped to other stamps",
    ),
  geoBacklogBytesMax: bytes(8192 * mebibyte).describe(
    "Commit logs that are kept for other stamps, of all ranges of this server; beyond, the longest is let go and its range is seeded again",
  ),
  geoSeedBytesPerSecond: bytes(32 * mebibyte).describe(
    "Rows of one range, and bytes of its blobs, that are sent in a second while another stamp is seeded",
  ),
  geoShipBytesPerSecond: z
    .number()
    .int()
    .min(0)
    .default(0)
    .describe("Rows of commits of one range, and bytes of their blobs, that are sent to another stamp in a second; 0: as fast as it goes"),
  geoPeerSecretsDir: z
    .string()
    .default("")
    .describe(
      "Folder with the secrets of other stamps, one file each, named as the stamp; empty: other stamps have the secret of this one",
    ),
  geoStampName: z
    .string()
    .default("")
    .describe(
      "Name of this stamp at the location service, if geoPeerSecretsDir has whole secrets of other stamps (all on one machine); empty: those secrets say it",
    ),
  atWorkMax: count(256).describe("Operations at work in this server; others wait for their turn, each account behind its own"),
  atWorkMin: count(16).describe("As many are at work at least, however long they take"),
  delayTargetMs: milliseconds(10).describe(
    "While several accounts ask and even the quickest operation takes longer than this, fewer are let to work at once",
  ),
  waitMaxMs: milliseconds(1_000).describe(
    "An account or partition whose operations wait longer than this, while others are there, is answered 503 ServerBusy",
  ),
  waitAloneMaxMs: milliseconds(10_000).describe("As waitMaxMs, of an account that is alone in this server"),
  dataAtWorkMax: count(32).describe(
    "Appends of blob data (1 MiB each, mostly) at work in this server; others wait for their turn, as operations do",
  ),
  dataAtWorkMin: count(4).describe("As many appends of blob data are at work at least, however long they take"),
  dataDelayTargetMs: milliseconds(50).describe("As delayTargetMs, of an append of blob data"),
  throttle: z
    .boolean()
    .default(true)
    .describe("Operations take turns by account and partition; off: everybody is at work at once, up to operationsMax"),
  operationsMax: count(5_000).describe("Operations at work or waiting in this server; more are refused"),
});

export type PartitionServerConfig = z.infer<typeof partitionServerConfigSchema>;

/** Returns the size of the cache; `memoryBytes`: memory of the machine or container, undefined if the server has none of its own. */
export const rowCacheBytesOf = ({ rowCacheBytesMax }: PartitionServerConfig, memoryBytes: number | undefined): number =>
  rowCacheBytesMax ?? Math.min(Math.max(Math.floor((memoryBytes ?? 0) / 8), 64 * mebibyte), 8192 * mebibyte);

/** Share of the places that waiting operations may have; the rest is for those that come while nobody waits. */
const waitingShare = 0.75;
/**
 * Share of the budget for waiting appends of blob data. They hold their bytes, and connections hold them back before so
 * many wait.
 */
const dataWaitingShare = 0.2;

export function admissionOf(config: PartitionServerConfig): GateOptions {
  const { throttle, operationsMax, atWorkMax, atWorkMin, delayTargetMs, waitMaxMs, waitAloneMaxMs } = config;
  return {
    limitMax: throttle ? atWorkMax : operationsMax,
    limitMin: throttle ? Math.min(atWorkMin, atWorkMax) : operationsMax,
    compared: "quickest",
    targetMs: delayTargetMs,
    waitMaxMs,
    waitAloneMaxMs: Math.max(waitMaxMs, waitAloneMaxMs),
    waitingMax: Math.ceil(operationsMax * waitingShare),
  };
}

/**
 * Like `admissionOf`, for appends of blob data: they take turns among themselves, and bound the queues of the streams.
 */
export function dataAdmissionOf(config: PartitionServerConfig): GateOptions {
  const { throttle, operationsMax, dataAtWorkMax, dataAtWorkMin, dataDelayTargetMs: targetMs } = config;
  const limits = throttle ? { limitMax: dataAtWorkMax, limitMin: Math.min(dataAtWorkMin, dataAtWorkMax) } : {};
  return { ...admissionOf(config), ...limits, targetMs, waitingMax: Math.ceil(operationsMax * dataWaitingShare) };
}

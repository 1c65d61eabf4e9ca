/** Configuration of an extent node: each key also by environment (STAMP_<UPPER_SNAKE>) and flag (--kebab-case). */
import { appendHeadersBytesMax, appendPayloadBytesMax, journalHeaderBytes, segmentRecordsOffset } from "@stamp/extent";
import { z } from "zod";

const mebibyte = 1024 * 1024;
const bytes = (fallback: number, min = 1, max = Number.MAX_SAFE_INTEGER) => z.number().int().min(min).max(max).default(fallback);
const milliseconds = (fallback: number) => z.number().int().min(1).default(fallback);

const extentNodeKeys = z.object({
  name: z.string().min(1).default("extent-node-1").describe("Name of this process, unique inside the stamp; also the node id"),
  listen: z.string().default("127.0.0.1:0").describe("host:port to listen at"),
  advertise: z.string().optional().describe("Address that others use, when it is not the one listened at"),
  lockService: z.string().default("127.0.0.1:7100").describe("Address of the lock service; of several, separated by commas"),
  dataDir: z.string().default(".stamp/extent-node-1").describe("Folder of this node's disk"),
  journalDir: z
    .string()
    .optional()
    .describe("Where the journal lies when it has a disk of its own: in the folder of this node's name below it"),
  faultDomain: z.string().default("").describe("What fails together with this node (a rack); empty: the node alone"),
  acceptJournalLoss: z
    .stringbool()
    .default(false)
    .describe("Start although the whole journal is gone: what was not sealed on this node is damaged then, and copied from others"),
  takeLowerTerm: z
    .stringbool()
    .default(false)
    .describe(
      "Obey the lock service's stream manager although this node knows a higher term: one that was never given (docs/guides/metadata.md)",
    ),
  journalSegmentBytes: bytes(32 * mebibyte, mebibyte).describe("Size of a journal segment, preallocated; the first of a disk is smaller"),
  appendBytesMax: bytes(appendPayloadBytesMax, 1_024, appendPayloadBytesMax).describe(
    "Largest append that is taken (payload): the same on every extent node; it must fit into a journal segment",
  ),
  journalSegmentsMax: z.number().int().min(2).default(4).describe("Segments; when all wait for extent files, appends wait too"),
  journalBatchBytesMax: bytes(8 * mebibyte).describe("Most bytes in one journal write"),
  journalQueueBytesMax: bytes(64 * mebibyte).describe("Most bytes waiting for the journal; beyond, appends are refused"),
  inPlaceBytesMin: bytes(256 * 1024, 0).describe(
    "Appends of so many bytes and more may be written once, into the extent's file, with only a pointer in the journal; 0: none",
  ),
  inPlaceBehindBytes: bytes(2 * mebibyte, 0).describe(
    "They are while so many bytes and more wait for the journal or are being written to it; 0: always",
  ),
  pendingBytesMax: bytes(64 * mebibyte).describe("Most bytes in the journal that wait for extent files; beyond, appends slow down"),
  appendTimeoutMs: milliseconds(800).describe("Longest time an append may take, whatever the caller allows"),
  extentBytesMax: bytes(1100 * mebibyte).describe("No extent grows beyond this (owners move on earlier)"),
  openFilesMax: z.number().int().min(8).default(256).describe("Extent files kept open"),
  indexedBlocksMax: z.number().int().min(1_000).default(2_000_000).describe("Blocks of sealed extents whose place is kept in memory"),
  highWaterPercent: z.number().min(1).max(100).default(95).describe("Disk use beyond which new extents are refused"),
  highWaterFreeBytes: z
    .number()
    .int()
    .min(0)
    .default(20 * 1024 ** 3)
    .describe("Free bytes with which new extents are taken whatever the disk's use in percent"),
  reserveBytes: bytes(128 * mebibyte, 0).describe("Free space below which appends are refused, kept for journal and seals"),
  metadataCopyEveryMs: milliseconds(30_000).describe(
    "Time between two looks whether the metadata store changed; a snapshot of it is kept here then",
  ),
  scrubBytesPerSecond: bytes(4 * mebibyte, 0).describe("How fast sealed replicas are read again and compared; 0: never"),
  scrubPauseMs: milliseconds(60_000).describe("Pause between two scrubs of everything"),
  reportEveryMs: milliseconds(1_000).describe("Time between reports to the stream manager"),
});

/** Returns the largest frames of one append with this payload. */
const recordBytes = (appendBytes: number): number => appendBytes + appendHeadersBytesMax;

/** An append that no segment or no extent can hold would be refused for ever: whoever configures that is told at the start. */
export const extentNodeSchema: typeof extentNodeKeys = extentNodeKeys.superRefine((config, context) => {
  const { appendBytesMax, extentBytesMax, journalSegmentBytes } = config;
  const needs = {
    journalSegmentBytes: [journalSegmentBytes, recordBytes(appendBytesMax) + segmentRecordsOffset + journalHeaderBytes],
    extentBytesMax: [extentBytesMax, recordBytes(appendBytesMax)],
  } as const;
  for (const [key, [given, needed]] of Object.entries(needs)) {
    if (given >= needed) continue;
    const message = `${given} is too small for appends of appendBytesMax = ${appendBytesMax}: at least ${needed}, or a smaller appendBytesMax`;
    context.addIssue({ code: "custom", path: [key], message });
  }
});

export type ExtentNodeConfig = z.infer<typeof extentNodeSchema>;

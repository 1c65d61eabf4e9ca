/** Configuration of a lock service: each key also by environment (STAMP_<UPPER_SNAKE>) and flag (--kebab-case). */
import { z } from "zod";

export const lockServiceSchema = z.object({
  name: z.string().min(1).default("lock-service-1").describe("Name of this process, unique inside the stamp"),
  listen: z.string().default("127.0.0.1:7100").describe("host:port to listen at"),
  advertise: z.string().optional().describe("Address that others use, when it is not the one listened at"),
  dataDir: z.string().default(".stamp/lock-service-1").describe("Folder of the metadata store"),
  metadataStore: z
    .enum(["leveldb", "etcd", "replicated"])
    .default("leveldb")
    .describe(
      "Where the metadata store is: in the folder of this process; in etcd, which several lock services share; or replicated in the folders of `members`",
    ),
  members: z
    .string()
    .default("")
    .describe(
      "Lock services that replicate the metadata store, this one among them: name=host:port, separated by commas; the same on each",
    ),
  consensusTickMs: z
    .number()
    .int()
    .min(5)
    .max(1_000)
    .default(100)
    .describe("Lock services that hear no leader for 10 to 20 of these times elect another one; the leader beats every second time"),
  logEntriesMax: z.number().int().min(16).default(10_000).describe("Entries of the replicated log from which on it is cut"),
  etcdEndpoints: z.string().default("").describe("Members of etcd, host:port, separated by commas"),
  etcdPrefix: z
    .string()
    .min(1)
    .max(256)
    .default("/stamp/")
    .describe("What the stamp's keys in etcd begin with; another one for each stamp"),
  etcdUser: z.string().default("").describe("User of etcd; empty: etcd asks for none"),
  etcdPasswordFile: z.string().default("").describe("File with the password of that user"),
  etcdCaFile: z.string().default("").describe("PEM file of the authorities of etcd's certificates; empty: connections are not encrypted"),
  etcdCertFile: z.string().default("").describe("PEM file of the certificate that this process shows to etcd"),
  etcdKeyFile: z.string().default("").describe("PEM file of that certificate's key"),
  etcdTtlSeconds: z
    .number()
    .int()
    .min(2)
    .max(60)
    .default(3)
    .describe("Life of the active lock service's key in etcd; standbys take over sooner when they see no beat of it for 2 s"),
  etcdCompactEveryMs: z
    .number()
    .int()
    .min(0)
    .default(0)
    .describe(
      "Only if the etcd is this stamp's alone: its history that is older than this is compacted, that of every key in it; 0: its operator compacts it",
    ),
  init: z
    .boolean()
    .default(false)
    .describe("Create a new stamp when the metadata store is empty; without it an empty store is never served"),
  reserveBytes: z
    .number()
    .int()
    .min(0)
    .default(32 * 1024 * 1024)
    .describe("Free space of its disk below which nothing new is recorded: leases are renewed and everything is read, writes are refused"),
  roomLookEveryMs: z
    .number()
    .int()
    .min(0)
    .default(1_000)
    .describe("How old its knowledge of that free space may be for questions and renewals; whatever is recorded has a look of its own"),
  keysMax: z
    .number()
    .int()
    .min(1)
    .default(1_100_000)
    .describe("Keys of the metadata store from which on transactions that make new ones are refused (docs/guides/metadata.md)"),
  waitingMax: z.number().int().min(1).default(10_000).describe("Requests that may wait for the store; more are refused"),
  groupMax: z.number().int().min(1).default(256).describe("Requests that may share one synced write"),
});

export type LockServiceConfig = z.infer<typeof lockServiceSchema>;

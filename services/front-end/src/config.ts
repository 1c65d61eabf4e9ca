/** Configuration of a front-end: each key also by environment (STAMP_<UPPER_SNAKE>) and flag (--kebab-case). */
import { type BearerRole, bearerRoles, isHostPattern, parseNetwork, parseSourcePattern } from "@stamp/azure-rest";
import { z } from "zod";
import type { DoorGateOptions } from "./door-gate.ts";

const mebibyte = 1024 * 1024;
const count = (fallback: number) => z.number().int().min(1).default(fallback);
const flag = z.boolean();

/** A list, or one text separated by commas. */
const names = z.preprocess(
  (value) =>
    typeof value === "string"
      ? value
          .split(",")
          .map((name) => name.trim())
          .filter((name) => name !== "")
      : value,
  z.array(z.string().min(1)).max(32),
);

const sources = names.refine(
  (texts) => texts.every((text) => parseSourcePattern(text) !== undefined),
  "scheme://host[:port][=network], such as https://*.blob.core.windows.net or http://10.1.2.3:10000",
);

const networks = names.refine(
  (texts) => texts.every((text) => parseNetwork(text) !== undefined),
  "addresses or networks of at least one bit, such as 10.1.2.3, 10.0.0.0/8 or fd00::/8",
);

const hosts = names.refine((texts) => texts.every(isHostPattern), "names of hosts, *.NAME for every name below it, or * for all");

const roles = z.preprocess(
  (value, context) => {
    if (typeof value !== "string") return value;
    try {
      return JSON.parse(value);
    } catch {
      context.addIssue({ code: "custom", message: "not JSON" });
      return z.NEVER;
    }
  },
  z.record(z.string(), z.enum(bearerRoles)),
);

export interface FrontEndConfig {
  readonly name: string;
  readonly listen: string;
  readonly advertise?: string | undefined;
  readonly lockService: string;
  readonly dataDir: string;
  readonly blobListen: string;
  readonly hostSuffixes: readonly string[];
  readonly webHostSuffixes: readonly string[];
  readonly queueListen: string;
  readonly queueHostSuffixes: readonly string[];
  readonly tableListen: string;
  readonly tableHostSuffixes: readonly string[];
  readonly dfsListen: string;
  readonly dfsHostSuffixes: readonly string[];
  readonly fileListen: string;
  readonly fileHostSuffixes: readonly string[];
  readonly allowDevelopmentAccount: boolean;
  readonly ownAccounts: boolean;
  readonly developmentAccountHosts: readonly string[];
  readonly trustedProxies: readonly string[];
  readonly requestTimeoutMs: number;
  readonly readAttemptTimeoutMs: number;
  readonly requestsMax: number;
  readonly accountShareMax: number;
  readonly throttle: boolean;
  readonly startsMax: number;
  readonly startsMin: number;
  readonly turnTargetMs: number;
  readonly waitMaxMs: number;
  readonly waitAloneMaxMs: number;
  readonly inlineBytesMax: number;
  readonly pieceBytes: number;
  readonly uploadWindowBytes: number;
  readonly downloadWindowBytes: number;
  readonly uploadBytesMax: number;
  readonly uploadBytesBeside: number;
  readonly smallReadTargetMs: number;
  readonly smallWriteTargetMs: number;
  readonly documentBytesMax: number;
  readonly downloadBytesMax: number;
  readonly bytesWaitMaxMs: number;
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
  readonly headBytesMax: number;
  readonly leastBytesPerSecond: number;
  readonly leastRateWindowMs: number;
  readonly accountCacheMs: number;
  readonly accountsMax: number;
  readonly mapWaitMs: number;
  readonly heldQuestionMs: number;
  readonly signalListenersMax: number;
  readonly tlsCert: string;
  readonly tlsKey: string;
  readonly oidcIssuer: string;
  readonly oidcAudiences: readonly string[];
  readonly oidcJwks: string;
  readonly oidcRolesClaim: string;
  readonly oidcRoles: Readonly<Record<string, BearerRole>>;
  readonly oidcPlainHttp: boolean;
  readonly oidcAuthorizationUri: string;
  readonly copySources: readonly string[];
  readonly strictVersions: boolean;
  readonly faultRules: boolean;
  readonly initFile: string;
}

export const frontEndConfigSchema: z.ZodType<FrontEndConfig> & z.ZodObject = z.object({
  name: z.string().min(1).default("front-end-1").describe("Unique name of this process inside the stamp"),
  listen: z.string().min(1).default("127.0.0.1:11300").describe("Where it serves gRPC, host:port"),
  advertise: z.string().min(1).optional().describe("Where others reach its gRPC door, when that is not `listen`"),
  lockService: z
    .string()
    .min(1)
    .default("127.0.0.1:11000")
    .describe("Address of the lock service, host:port; of several, separated by commas"),
  dataDir: z.string().default(".stamp/front-end-1").describe("Folder of this process; it keeps nothing but its own start counter"),
  blobListen: z
    .string()
    .default("127.0.0.1:10000")
    .describe("Where it serves the Blob REST API over HTTP, host:port; empty for not at all"),
  hostSuffixes: names
    .default(["blob.localhost"])
    .describe("Suffixes of host names whose first label is the account (acct.blob.localhost); otherwise it is first in the path"),
  queueListen: z
    .string()
    .default("127.0.0.1:10001")
    .describe("Where it serves the Queue REST API over HTTP, host:port; empty for not at all"),
  webHostSuffixes: names
    .default(["web.localhost"])
    .describe("Suffixes of host names of static websites (acct.web.localhost), on the port of the Blob service"),
  queueHostSuffixes: names.default(["queue.localhost"]).describe("As hostSuffixes, for the Queue service"),
  tableListen: z
    .string()
    .default("127.0.0.1:10002")
    .describe("Where it serves the Table REST API over HTTP, host:port; empty for not at all"),
  tableHostSuffixes: names.default(["table.localhost"]).describe("As hostSuffixes, for the Table service"),
  dfsListen: z.string().default("").describe("Where it serves Data Lake Storage over HTTP, host:port; empty for not at all"),
  dfsHostSuffixes: names.default(["dfs.localhost"]).describe("As hostSuffixes, for Data Lake Storage"),
  fileListen: z.string().default("").describe("Where it serves the Files service over HTTP, host:port; empty for not at all"),
  fileHostSuffixes: names.default(["file.localhost"]).describe("As hostSuffixes, for the Files service"),
  allowDevelopmentAccount: flag
    .default(false)
    .describe("Serve the well-known key of devstoreaccount1 to everybody who can connect, also through a proxy"),
  ownAccounts: flag
    .default(false)
    .describe(
      "The stamp has accounts of its own: the well-known key of devstoreaccount1 is refused, unless allowDevelopmentAccount is set",
    ),
  developmentAccountHosts: hosts
    .default([])
    .describe(
      "With allowDevelopmentAccount: hosts that requests with the well-known key may name, besides addresses, localhost and names without a dot",
    ),
  trustedProxies: networks
    .default([])
    .describe(
      "Addresses and networks of proxies whose X-Forwarded-For, -Proto and -Host say who the client is and what it asked for; empty: none",
    ),
  requestTimeoutMs: count(30_000).describe("Time for an operation when the request does not say (`timeout`), counted from its last byte"),
  readAttemptTimeoutMs: count(5_000).describe("How long one attempt to read waits for a partition server before it is made again"),
  requestsMax: count(4_096).describe("Requests in progress; more are answered 503 ServerBusy"),
  accountShareMax: z.number().gt(0).max(1).default(0.875).describe("Of requestsMax: as many requests of one account may be in progress"),
  throttle: flag
    .default(true)
    .describe("Requests take turns by account; off: every request is started at once, and one account may hold everything"),
  startsMax: count(64).describe("Requests started in one turn of the event loop; others wait for the next, each account behind its own"),
  startsMin: count(4).describe("As many are started in a turn at least, however long it takes"),
  turnTargetMs: count(2).describe("While several accounts ask and turns take longer than this on average, fewer are started in each"),
  waitMaxMs: count(1_000).describe(
    "An account whose requests wait longer than this before they are started, while others are there, is answered 503 ServerBusy",
  ),
  waitAloneMaxMs: count(10_000).describe("As waitMaxMs, of an account that is alone in this front-end"),
  inlineBytesMax: z
    .number()
    .int()
    .min(0)
    .max(128 * 1024)
    .default(16 * 1024)
    .describe("Content up to this size travels and is kept inside the blob's row"),
  pieceBytes: z
    .number()
    .int()
    .min(64 * 1024)
    .max(4 * mebibyte)
    .default(mebibyte)
    .describe("Size of a piece of content on its way in"),
  uploadWindowBytes: count(2 * mebibyte).describe("Bytes of one request on their way in and not yet durable"),
  downloadWindowBytes: count(4 * mebibyte).describe("Bytes of one request read ahead on their way out"),
  uploadBytesMax: count(32 * mebibyte).describe(
    "Bytes of all requests on their way in; a quarter is kept for accounts and addresses that hold nothing; beyond, clients are slowed down",
  ),
  uploadBytesBeside: count(3 * mebibyte).describe(
    "As uploadBytesMax, of large bodies whose clients are quick, while small requests are there and take longer than their target; three pieces at least",
  ),
  smallReadTargetMs: count(2).describe("While small reads take longer than this at partition servers on average, large bodies give way"),
  smallWriteTargetMs: count(5).describe("As smallReadTargetMs, of small writes"),
  documentBytesMax: count(32 * mebibyte).describe(
    "As uploadBytesMax, of bodies that are read whole (block lists, batches, entities); one that takes 5 s and longer gives way to others",
  ),
  downloadBytesMax: count(256 * mebibyte).describe(
    "Bytes of all requests on their way out; a quarter is kept for accounts and addresses that hold nothing; beyond, less is read ahead",
  ),
  bytesWaitMaxMs: count(10_000).describe(
    "A request that waits longer than this for room in uploadBytesMax or downloadBytesMax is answered 503 ServerBusy",
  ),
  connectionsMax: count(16_384).describe(
    "Connections of an HTTP door; for a further one the oldest idle connection of the address with most ends, or the oldest busy one",
  ),
  headBytesMax: count(32 * mebibyte).describe(
    "Bytes of heads that have not come to their end, of all connections of a door; beyond, the address that holds most loses connections",
  ),
  connectionsPerAddressMax: count(8_192).describe(
    "Connections of an HTTP door from one address; for a further one its own oldest idle connection ends",
  ),
  leastBytesPerSecond: z
    .number()
    .int()
    .min(0)
    .default(1_024)
    .describe("Least rate of a client while this front-end waits for it, in a body or an answer; slower ones are ended. 0: any rate"),
  leastRateWindowMs: count(60_000).describe("How long a client may stand still before leastBytesPerSecond counts"),
  accountCacheMs: count(5_000).describe(
    "How long the keys of an account are used before they are read again; more than 5,000 counts as 5,000",
  ),
  accountsMax: count(10_000).describe("Accounts whose keys are held"),
  mapWaitMs: count(5_000).describe("How long the partition manager holds a question for a newer map"),
  heldQuestionMs: z
    .number()
    .int()
    .min(0)
    .default(2_000)
    .describe("How long the lock service may hold the question who leads; 0: it answers at once"),
  signalListenersMax: count(10_000).describe("Listeners of stamp.v1.Signals at this front-end; one account has at most half of them"),
  tlsCert: z
    .string()
    .default("")
    .describe("PEM file of the certificate chain: the REST doors serve HTTPS instead of HTTP; read again when it changes"),
  tlsKey: z.string().default("").describe("PEM file of the certificate's key"),
  oidcIssuer: z.string().default("").describe("Issuer of bearer tokens (OpenID Connect); empty: none are taken"),
  oidcAudiences: names.default(["https://storage.azure.com"]).describe("`aud` of a bearer token: one of these"),
  oidcJwks: z.string().default("").describe("URL or file of the issuer's keys; empty: as its discovery document says"),
  oidcRolesClaim: z
    .string()
    .min(1)
    .default("roles")
    .describe("Claim of a bearer token with its roles: a list, or names separated by spaces"),
  oidcRoles: roles
    .default({})
    .describe(
      'Roles by the claim\'s values, as JSON: {"team-x":"contribute"}; read, contribute, own. The names of Azure\'s data roles are known',
    ),
  copySources: sources
    .default([])
    .describe("Places besides this stamp that blobs may be copied from (https://*.blob.core.windows.net); empty: none"),
  strictVersions: flag
    .default(false)
    .describe("Refuse requests that name a newer version of the service than is known, instead of serving them as the newest one"),
  faultRules: flag
    .default(false)
    .describe("Take rules that make requests fail or wait on purpose, for applications under test (docs/guides/faults.md)"),
  initFile: z
    .string()
    .default("")
    .describe("File, or folder of files, with what is made before the doors open: accounts, containers and more (docs/guides/init.md)"),
  oidcPlainHttp: flag
    .default(false)
    .describe("Read the issuer's documents over plain HTTP from another machine, too: only if the network to it is safe"),
  oidcAuthorizationUri: z.string().default("").describe("Told with 401 to whoever shows no token; empty: the issuer"),
});

/** Bounds of the HTTP doors (ports-node, http-server.ts). */
export function httpLimitsOf(
  config: FrontEndConfig,
): Pick<FrontEndConfig, "connectionsMax" | "connectionsPerAddressMax" | "headBytesMax" | "leastBytesPerSecond" | "leastRateWindowMs"> {
  const { connectionsMax, connectionsPerAddressMax, headBytesMax, leastBytesPerSecond, leastRateWindowMs } = config;
  return { connectionsMax, connectionsPerAddressMax, headBytesMax, leastBytesPerSecond, leastRateWindowMs };
}

export function doorGateOf(config: FrontEndConfig): DoorGateOptions {
  const { throttle, requestsMax, accountShareMax, startsMax, startsMin, turnTargetMs, waitMaxMs, waitAloneMaxMs } = config;
  return {
    requestsMax,
    accountShareMax: throttle ? accountShareMax : 1,
    startsMax: throttle ? startsMax : requestsMax,
    startsMin: throttle ? Math.min(startsMin, startsMax) : requestsMax,
    turnTargetMs,
    waitMaxMs,
    waitAloneMaxMs: Math.max(waitMaxMs, waitAloneMaxMs),
  };
}

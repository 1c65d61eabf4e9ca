/**
 * The first words of the command line: what each does, and which module has it. A call loads the module of its own word
 * only, because loading all of them takes longer than most commands do. Help for all words needs none of them.
 */
import type { Command } from "commander";

type Add = (program: Command) => void;

/** Commands with their texts, in the order of the help. */
const words = {
  up: "start the cluster; without -d in the foreground until Ctrl-C",
  down: "stop the cluster cleanly; the data stay",
  reset: "delete everything a stopped cluster has stored",
  health: "how the stamp is, in one sentence, and what to do about it; exit code 0, 6 or 7",
  status: "what runs, and where everything is",
  console: "a page in the browser that shows the stamp; prints the link that signs in",
  top: "what goes on now, again every two seconds: processes, accounts, ranges",
  trace: "requests of clients as they end; by account, operation, status and time",
  logs: "the logs of all processes as one, in the order of time; also of a stopped cluster",
  stream: "streams of the stream layer; who changes one that a partition server owns takes its partition out of service",
  extent: "extents and their replicas",
  node: "extent nodes",
  host: "hosts of a stamp on several machines: list, drain, remove",
  repair: "replicas and fragments that are lost and made again",
  coding: "erasure coding: sealed extents that are stored as fragments instead of replicas",
  metadata: "the metadata store: streams, extents, leases, epochs",
  "lock-service": "lock services that replicate the metadata store: members, and who leads",
  partition: "range partitions: who serves which keys, split, merge, move",
  rebalance: "load balancing of range partitions",
  config: "configuration of the cluster",
  fsck: "check extent tables, files and the stream manager against one another; exit code 1 when something is wrong",
  scrub: "reading everything again to find what rotted on disk",
  faults: "requests that fail or wait on purpose, for applications under test: add, list and remove rules",
  drill: "break something on purpose, under writing clients, and check every promise",
  account: "accounts: keys, and what only the operator sets",
  export: "an account as an archive of files: everything that clients have written",
  import: "an archive of stamp export, or an emulator that runs, into an account",
  file: "files of shares, held open as a gateway of another protocol holds them: open, list, lock, mark, close",
  location: "the location service over several stamps: stamps, and which of them has which account",
  geo: "copies of accounts at a second stamp: status, protection, failover",
  token: "print a token for gRPC tools: of the stamp for every internal port, or of an account for stamp.v1.FrontEnd",
  certs: "certificates for HTTPS",
  upgrade: "the feature level of the stamp: what an upgrade waits for, and its end",
  secret: "the secret that processes prove to each other: its age, and its rotation without a stop",
  keys: "the master keys that seal secrets of accounts at rest: which rows they seal, and their rotation without a stop",
  debug: "a file for whoever helps with a stamp: logs, facts and configuration, without secrets",
  completion: "completion of command lines in bash, zsh or fish: prints the script",
  "man-page": "the manual page of all commands",
} as const;

export type CommandWord = keyof typeof words;
export const topLevelWords = Object.keys(words) as CommandWord[];

const up = async (): Promise<Add> => (await import("./cluster/up.ts")).addUp;
const shell = async (): Promise<Add> => (await import("./shell/shell-commands.ts")).addShellCommands;
const node = async (): Promise<Add> => (await import("./nodes/node-commands.ts")).addNode;

const modules: Readonly<Record<CommandWord, () => Promise<Add>>> = {
  up,
  down: up,
  reset: up,
  health: async () => (await import("./health/health-command.ts")).addHealth,
  status: async () => (await import("./status/status.ts")).addStatus,
  console: async () => (await import("./console/console-command.ts")).addConsole,
  top: async () => (await import("./live/top-command.ts")).addTop,
  trace: async () => (await import("./live/trace-command.ts")).addTrace,
  logs: async () => (await import("./logs/logs-command.ts")).addLogs,
  stream: async () => (await import("./streams/stream-commands.ts")).addStream,
  extent: async () => (await import("./streams/extent-commands.ts")).addExtent,
  node,
  host: async () => (await import("./cluster/host-commands.ts")).addHost,
  repair: node,
  coding: async () => (await import("./coding/coding-command.ts")).addCoding,
  metadata: async () => (await import("./metadata/metadata-command.ts")).addMetadata,
  "lock-service": async () => (await import("./metadata/lock-service-commands.ts")).addLockService,
  partition: async () => (await import("./partitions/partition-command.ts")).addPartition,
  rebalance: async () => (await import("./partitions/rebalance-command.ts")).addRebalance,
  config: async () => (await import("./cluster/config-show.ts")).addConfig,
  fsck: async () => (await import("./fsck/fsck-command.ts")).addFsck,
  scrub: async () => (await import("./nodes/scrub-command.ts")).addScrub,
  faults: async () => (await import("./faults/faults-command.ts")).addFaults,
  drill: async () => (await import("./drills/drill-command.ts")).addDrill,
  account: async () => (await import("./accounts/account-command.ts")).addAccount,
  export: async () => (await import("./archive/archive-commands.ts")).addExport,
  import: async () => (await import("./archive/archive-commands.ts")).addImport,
  file: async () => (await import("./files/file-command.ts")).addFile,
  location: async () => (await import("./geo/location-verbs.ts")).addLocationVerbs,
  geo: async () => (await import("./geo/geo-command.ts")).addGeo,
  token: async () => (await import("./accounts/token-command.ts")).addToken,
  upgrade: async () => (await import("./upgrade/upgrade-command.ts")).addUpgrade,
  secret: async () => (await import("./secret/secret-command.ts")).addSecret,
  keys: async () => (await import("./keys/keys-command.ts")).addKeys,
  debug: async () => (await import("./debug/debug-command.ts")).addDebug,
  completion: shell,
  "man-page": shell,
  certs: async () => (await import("./certificates/certs-command.ts")).addCerts,
};

/** Adds the command of a first word to the program, with its description. */
export const topLevel = (program: Command, word: CommandWord): Command => program.command(word).description(words[word]);

/**
 * Adds every first word to the program: with its options and subcommands if `args` ask for it, else only with its
 * description.
 */
export async function addWords(program: Command, args: readonly string[]): Promise<void> {
  const [first, second] = args.filter((each) => !each.startsWith("-"));
  const asked = first === "help" ? second : first;
  const add = topLevelWords.includes(asked as CommandWord) ? await modules[asked as CommandWord]() : undefined;
  add?.(program);
  const added = new Set(program.commands.map((each) => each.name()));
  for (const word of topLevelWords) if (!added.has(word)) topLevel(program, word);
}

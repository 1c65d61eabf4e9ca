/** The world of a real process: everything below one data folder. */
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Rules } from "@stamp/base";
import { allRules } from "@stamp/base";
import type { Logger, SecretFacts, Transport, World } from "@stamp/ports";
import { NodeClock } from "./clock.ts";
import { NodeDigest } from "./digest.ts";
import { NodeDisk } from "./disk/disk.ts";
import { NodeKeyValueStores } from "./disk/key-value.ts";
import type { Credential } from "./grpc/credentials/credential.ts";
import type { PeerTls } from "./grpc/credentials/peer-tls.ts";
import { openCredential } from "./grpc/credentials/secret-credential.ts";
import { NodeForeignCalls } from "./grpc/foreign-calls.ts";
import { GrpcTransport } from "./grpc/transport.ts";
import type { LogLevel } from "./process/logger.ts";
import { nodeLogger } from "./process/logger.ts";
import { withSourcePlaces } from "./process/source-places.ts";
import { NodeRandom } from "./random.ts";

/** Exit code after `world.fatal`; the supervisor starts the process again. */
export const fatalExitCode = 71;

export interface NodeWorldOptions {
  /** Files in `<dataDir>/files`, stores in `<dataDir>/stores`. Made when absent. */
  readonly dataDir: string;
  /** Holds what else is below `dataDir`, which is then neither made nor used. */
  readonly storage?: Pick<World, "disk" | "keyValue">;
  /** Name of the process; in every log line. */
  readonly name: string;
  readonly logLevel?: LogLevel;
  readonly logger?: Logger;
  /** Transport of the process (default: gRPC). */
  readonly transport?: Transport;
  /** Returns the credential of the process for calls; without it, neither side proves its name. */
  readonly credential?: () => Credential;
  /** Certificates by which the process and its peers prove their names; undefined without TLS. */
  readonly tls?: (() => PeerTls) | undefined;
  /** Returns facts about the stamp's secret; undefined: there are none. */
  readonly secret?: () => SecretFacts;
  /** Address at which others reach the process, if it is not the one it listens at. */
  readonly advertised?: string | undefined;
  /** Most memory of large frames that is kept for the next ones, in bytes; 8 MiB if not given. */
  readonly reusedBytesMax?: number;
  readonly rules?: Rules;
  /** Memory of the process in bytes; given if the process has only this role. */
  readonly memoryBytes?: number;
  /** Called instead of ending the process, where it runs several roles. */
  readonly onFatal?: (reason: string) => void;
}

export function nodeWorld(options: NodeWorldOptions): World {
  const clock = new NodeClock();
  const credential = options.credential ?? (() => openCredential);
  const logger = options.logger ?? nodeLogger({ level: options.logLevel ?? "info", fields: { name: options.name } });
  const limits = options.reusedBytesMax === undefined ? {} : { reusedBytesMax: options.reusedBytesMax };
  const { tls, advertised } = options;
  return {
    clock,
    random: new NodeRandom(),
    ...(options.storage ?? storageIn(options.dataDir)),
    transport: options.transport ?? new GrpcTransport({ clock, logger, credential, tls, advertised, limits }),
    foreign: new NodeForeignCalls(clock),
    digest: new NodeDigest(),
    logger,
    rules: options.rules ?? allRules,
    pid: process.pid,
    ...(options.secret === undefined ? {} : { secret: options.secret }),
    ...(options.memoryBytes === undefined ? {} : { memoryBytes: options.memoryBytes }),
    cpuMs: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000;
    },
    fatal: (reason) => {
      logger.error("the process ends because it must not go on", { reason, stack: withSourcePlaces(new Error(reason).stack ?? "") });
      if (options.onFatal) options.onFatal(reason);
      else process.exit(fatalExitCode);
    },
  };
}

function storageIn(dataDir: string): Pick<World, "disk" | "keyValue"> {
  const files = join(dataDir, "files");
  const stores = join(dataDir, "stores");
  for (const folder of [files, stores]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Whatever the umask is, and for what an older build has made: nobody else gets at anything below.
  chmodSync(dataDir, 0o700);
  return { disk: new NodeDisk(files), keyValue: new NodeKeyValueStores(stores) };
}

/**
 * The life of a process: configuration, world, role, doors, signals. Exit codes: 0 stopped as asked, 64 wrong configuration, 69 it could
 * not start, 70 a bug (uncaught error), 71 `world.fatal`, 75 it did not stop in time.
 */
import { flushCompileCache } from "node:module";
import { release } from "@stamp/base";
import {
  collectorUrlShape,
  collectorUrlText,
  type HttpHandler,
  isLoopback,
  type Logger,
  type Role,
  tracedTransport,
  type World,
} from "@stamp/ports";
import { isCaller } from "@stamp/wire";
import { z } from "zod";
import { isFromSources, loadGrpcSoon } from "../grpc/native/load.ts";
import { defaultLimits } from "../grpc/options.ts";
import type { HttpLimits } from "../http/http-limits.ts";
import { serveHttp } from "../http/http-server.ts";
import type { TlsFiles } from "../secrets/certificates.ts";
import { PeerCertificates } from "../secrets/peer-certificates.ts";
import { WatchedSecret } from "../secrets/watched-secret.ts";
import { otlpTracer } from "../tracing/otlp.ts";
import { nodeWorld } from "../world.ts";
import { assertAllRules } from "./assert-all-rules.ts";
import { ConfigError, envName, HelpRequested, loadConfig, unknownNames } from "./config.ts";
import { closeDoors, type OpenDoor, stopKeys } from "./graceful-stop.ts";
import { healthHandler } from "./health.ts";
import { logLevels, nodeLogger } from "./logger.ts";
import { countBuffersAsHeap, machineMemoryBytes } from "./memory.ts";
import type { ServedCertificate } from "./metrics.ts";
import { fittedDoors } from "./open-files.ts";

/** Time for everything but the drain of HTTP doors. */
const stopTimeoutMs = 10_000;
const healthDoor = "health";

/** Keys that every process has; a role's schema may define its own variant of each. */
const commonSchema = z.object({
  name: z.string().min(1).describe("Unique inside the stamp, e.g. extent-node-1."),
  dataDir: z.string().min(1).describe("Folder of everything that this process keeps."),
  http: z.string().default("").describe("host:port of the health door (/live, /ready, /metrics); empty for none."),
  clusterSecret: z
    .string()
    .default("")
    .describe("Secret of the stamp; better a file, or the environment. Needed where others can connect."),
  clusterSecretFile: z.string().default("").describe("File with the secret of the stamp, instead of clusterSecret."),
  clusterSecretMake: z.boolean().default(false).describe("Make clusterSecretFile when it is not there."),
  clusterSecretPrevious: z.string().default("").describe("A secret that is accepted too, while processes change to clusterSecret in turn."),
  clusterSecretPreviousFile: z
    .string()
    .default("")
    .describe("File with it, by default clusterSecretFile with .previous; it need not exist."),
  clusterCertFile: z
    .string()
    .default("")
    .describe("PEM file of the certificate with which the process proves who it is to others (TLS); empty: no TLS between processes."),
  clusterKeyFile: z.string().default("").describe("PEM file of that certificate's key."),
  clusterCaFile: z.string().default("").describe("PEM file of the authorities whose certificates are trusted."),
  reusedBytesMax: z
    .number()
    .int()
    .min(0)
    .default(defaultLimits.reusedBytesMax)
    .describe("Most memory of large calls that came in (256 KiB and more) that is kept for the next ones, in bytes; 0: none."),
  logLevel: z.enum(logLevels).default("info").describe("Least important lines that are written."),
  otlpEndpoint: z
    .string()
    .refine((url) => url === "" || collectorUrlShape.test(url), collectorUrlText)
    .default("")
    .describe("URL of a collector of OpenTelemetry (OTLP/HTTP) that gets spans of requests; empty: nothing is traced."),
  otlpShare: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe("Part of the requests that are traced, 0 to 1; a request with a traceparent says itself whether it is."),
  ...stopKeys,
});

/** Known around the processes: of what starts them, of the command line in a container, of every process but one. */
const surroundings = [
  ...["STAMP_CONFIG", "STAMP_SERVICE", "STAMP_ROOT", "STAMP_PROCESSES", "STAMP_COMPOSE", "STAMP_CONNECTION_STRING", "STAMP_LOCK_SERVICE"],
  "STAMP_TLS",
  // A setting of front-ends, in an image for every process.
  "STAMP_INIT_FILE",
];

export interface ServedDoor {
  readonly name: string;
  readonly listen: string;
  readonly handler: HttpHandler;
  /** Files of a certificate, to serve HTTPS instead of HTTP. */
  readonly tls?: TlsFiles | undefined;
  /** Other bounds than the usual ones. */
  readonly limits?: Partial<HttpLimits>;
}

export interface ServiceDefinition<S extends z.ZodObject, R extends Role> {
  /** lock-service, stream-manager, … */
  readonly role: string;
  readonly schema: S;
  readonly create: (world: World, config: z.infer<S>) => R | Promise<R>;
  /** Does what comes before the doors open; false: they stay closed, and the process tells why with its status. */
  readonly beforeDoors?: (role: R, config: z.infer<S>) => Promise<boolean>;
  /** HTTP doors of the role, opened after its start; an empty `listen` is left out. */
  readonly doors?: (role: R, config: z.infer<S>) => readonly ServedDoor[];
}

/** `makeWorld`: makes another world than Node's, for tests of refusals. */
export async function runService<S extends z.ZodObject, R extends Role>(
  service: ServiceDefinition<S, R>,
  makeWorld: typeof nodeWorld = nodeWorld,
): Promise<void> {
  countBuffersAsHeap();
  // Files of libraries, too (LevelDB makes its own): nobody else on the machine reads what a stamp stores.
  process.umask(0o077);
  const config = configure(service);
  const common = config as unknown as z.infer<typeof commonSchema>;
  const { dataDir, name, logLevel, reusedBytesMax } = common;
  const { listen = "", advertise } = config as { listen?: string; advertise?: string };
  const logger = nodeLogger({ level: logLevel, fields: { name } });
  const secret = secretOrExit(service.role, common, [listen, common.http], logger);
  const certificates = certificatesOrExit(service.role, common, logger);
  const plain = makeWorld({
    dataDir,
    name,
    logger,
    memoryBytes: machineMemoryBytes(),
    credential: () => secret.credential,
    secret: () => secret.facts,
    tls: certificates === undefined ? undefined : () => certificates.tls,
    advertised: advertise,
    reusedBytesMax,
  });
  const { world, closeTracer } = await traced(plain, service.role, common);
  secret.watch();
  certificates?.watch();
  const known = [...Object.keys(service.schema.shape), ...Object.keys(commonSchema.shape)].map(envName);
  const unknown = unknownNames(process.env, known.concat(surroundings));
  // Not refused: the environment is not ours alone, and a version before has to start with what the next one knows.
  if (unknown.length > 0) logger.warn("names of the environment that are no settings of this process are ignored", { unknown });
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      logger.error("the process ends by a bug", { event, error });
      process.exit(70);
    });
  }
  const open: OpenDoor[] = [];
  const served = (): ServedCertificate[] =>
    open.flatMap(({ door, listener: { certificate } }) => (certificate === undefined ? [] : [{ door, ...certificate }]));
  let stopping = false;
  let role: R;
  try {
    assertAllRules(world);
    role = await service.create(world, config);
    const { stopNotReadyMs, stopDrainMs } = common;
    stopOnSignals(logger, stopTimeoutMs + stopNotReadyMs + stopDrainMs, async () => {
      stopping = true;
      const health = open.filter(({ door }) => door === healthDoor);
      await closeDoors(
        open.splice(0).filter((each) => !health.includes(each)),
        role,
        { stopNotReadyMs, stopDrainMs },
        logger,
      );
      await role.stop();
      await world.transport.close();
      await closeTracer();
      for (const { listener } of health) await listener.close(0);
    });
    if (common.http !== "") {
      const handler = healthHandler(
        service.role,
        common.name,
        role,
        served,
        () => secret.facts,
        () => certificates,
        () => stopping,
      );
      const listener = await serveHttp(handler, { listen: common.http, logger });
      open.push({ door: healthDoor, listener });
      logger.info("health door open", { http: listener.address });
    }
    await role.start();
    if ((await service.beforeDoors?.(role, config)) === false) return;
    // A signal to stop may have come meanwhile.
    if (stopping) return;
    const doors = (service.doors?.(role, config) ?? []).filter(({ listen }) => listen !== "");
    for (const door of fittedDoors(doors, logger)) {
      const listener = await serveHttp(door.handler, { listen: door.listen, logger, tls: door.tls, limits: door.limits });
      open.push({ door: door.name, listener });
      logger.info("door open", { door: door.name, listen: listener.address });
    }
  } catch (error) {
    logger.error("the process could not start", { role: service.role, error });
    process.exit(69);
  }
  logger.info("started", { role: service.role, release, address: role.address, pid: process.pid });
  if (isFromSources(import.meta.url)) loadGrpcSoon(world.clock, logger);
  // With NODE_COMPILE_CACHE set: kept now and not at the exit, so that a process that is killed starts again in half the time.
  flushCompileCache();
}

/** Returns the world with a tracer, if the process has a collector for its spans. */
async function traced(
  world: World,
  role: string,
  { otlpEndpoint: endpoint, otlpShare: share, name }: z.infer<typeof commonSchema>,
): Promise<{ readonly world: World; readonly closeTracer: () => Promise<void> }> {
  if (endpoint === "") return { world, closeTracer: async () => {} };
  const tracer = await otlpTracer({ endpoint, share, role, name, release, logger: world.logger });
  return { world: { ...world, tracer, transport: tracedTransport(world.transport, tracer) }, closeTracer: () => tracer.close() };
}

function configure<S extends z.ZodObject>(service: { readonly role: string; readonly schema: S }): z.infer<S> {
  try {
    const own = service.schema.shape;
    const common = Object.fromEntries(Object.entries(commonSchema.shape).filter(([key]) => !Object.hasOwn(own, key)));
    // Not the other way round: what the role's schema says of several keys together stays.
    const schema = service.schema.safeExtend(common);
    return loadConfig(schema, process.env, process.argv.slice(2)) as unknown as z.infer<S>;
  } catch (error) {
    if (error instanceof HelpRequested) {
      process.stdout.write(`${service.role}\n\n${error.message}\n`);
      process.exit(0);
    }
    if (!(error instanceof ConfigError)) throw error;
    wrongConfiguration(service.role, error.message);
  }
}

function wrongConfiguration(role: string, message: string): never {
  process.stderr.write(`${role}: ${message}\n`);
  process.exit(64);
}

/**
 * Returns the secret that the configuration names. Without one, a process listens only where nobody else can connect: all of `internal`,
 * the addresses of gRPC and of the health door, must be of loopback. Those of the REST doors are not internal.
 */
function secretOrExit(role: string, common: z.infer<typeof commonSchema>, internal: readonly string[], logger: Logger): WatchedSecret {
  // Anybody on this machine can read a command line.
  if (process.argv.some((argument) => /^--cluster-secret(-previous)?(=|$)/.test(argument))) {
    wrongConfiguration(role, `a secret is not given by a flag: name a file (--cluster-secret-file) or take ${envName("clusterSecret")}`);
  }
  try {
    const secret = new WatchedSecret(common, logger, isCaller(role) ? role : undefined);
    const reachable = internal.find((address) => address !== "" && !isLoopback(address));
    if (!secret.credential.open || reachable === undefined) return secret;
    return wrongConfiguration(
      role,
      `others can connect to ${reachable}, and there is no secret of the stamp that they would have to prove. Make one, and give it to ` +
        `every process (docs/guides/internal-ports.md), or listen on 127.0.0.1:\n` +
        `  (umask 077; openssl rand -base64 32 > cluster-secret); export ${envName("clusterSecretFile")}=$PWD/cluster-secret`,
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return wrongConfiguration(role, error.message);
  }
}

/** Returns the certificates that the configuration names; undefined if it names none. */
function certificatesOrExit(role: string, common: z.infer<typeof commonSchema>, logger: Logger): PeerCertificates | undefined {
  const { name, clusterCertFile: cert, clusterKeyFile: key, clusterCaFile: ca } = common;
  const named = [cert, key, ca].filter((path) => path !== "").length;
  if (named === 0) return undefined;
  if (named < 3) wrongConfiguration(role, "clusterCertFile, clusterKeyFile, clusterCaFile: all three are given, or none");
  try {
    const certificates = new PeerCertificates({ cert, key, ca }, logger);
    const { own } = certificates.tls;
    if (own.role !== role || own.name !== name)
      wrongConfiguration(role, `${cert} is for the ${own.role} ${own.name}, and this process is the ${role} ${name}`);
    return certificates;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return wrongConfiguration(role, error.message);
  }
}

function stopOnSignals(logger: Logger, timeoutMs: number, stop: () => Promise<void>): void {
  let stopping = false;
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      logger.info("stopping", { signal });
      setTimeout(() => {
        logger.error("the process did not stop in time", { timeoutMs });
        process.exit(75);
      }, timeoutMs);
      stop().then(
        () => {
          logger.info("stopped");
          process.exit(0);
        },
        (error: unknown) => {
          logger.error("the process stopped with an error", { error });
          process.exit(70);
        },
      );
    });
  }
}

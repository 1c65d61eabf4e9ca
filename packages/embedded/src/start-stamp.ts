/**
 * A whole stamp in one process, as a library: every role of the cluster, the same code and the same three replicas on the real disk,
 * connected by direct calls instead of gRPC. For a test suite or a small machine; what it does not give is survival of its process.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FailureError, type Outcome, unwrap } from "@stamp/base";
import type { FrontEndRole } from "@stamp/front-end";
import { type CallOptions, type Client, isLoopback, type Logger, type Role, silentLogger, sleep, type World } from "@stamp/ports";
import { assertAllRules, type HttpListener, InProcessNetwork, metricsText, nodeWorld, serveHttp } from "@stamp/ports-node";
import { Accounts } from "@stamp/wire";
import { type OidcSettings, partitionManager, plan } from "./plan.ts";

export interface StartOptions {
  /** Everything that is kept. Without it a temporary folder that `stop` removes. A folder of an earlier start has its data. */
  readonly dataDir?: string;
  /** Where the REST API is served, on loopback; 0 (the default) for any free port. */
  readonly ports?: { readonly blob?: number; readonly queue?: number; readonly table?: number };
  /** PEM files of a certificate chain and its key; with them HTTPS is served instead of HTTP. */
  readonly tls?: { readonly certificatePath: string; readonly keyPath: string };
  /** 3 is the least for three copies; default 3. */
  readonly extentNodes?: number;
  /** Default 1. */
  readonly partitionServers?: number;
  /** Bearer tokens; without it none are taken. */
  readonly oidc?: OidcSettings;
  /** Other places that blobs may be copied from, as the front-end's configuration has them; without it there are none. */
  readonly copySources?: readonly string[];
  readonly logger?: Logger;
  /** How long it may take until everything serves. Default 20,000. */
  readonly readyTimeoutMs?: number;
}

export interface BlobSettings {
  readonly versioning?: boolean;
  readonly containerDeleteRetentionDays?: number;
  readonly allowPublicAccess?: boolean;
}

export interface Stamp {
  readonly endpoints: { readonly blob: string; readonly queue: string; readonly table: string };
  /** For `BlobServiceClient.fromConnectionString`, `QueueServiceClient.fromConnectionString`, `TableClient.fromConnectionString`. */
  readonly connectionString: string;
  readonly dataDir: string;
  /**
   * Sets what the REST API leaves to the operator: versioning of blobs, for how many days deleted containers are kept
   * (0: not), and whether containers may be read without authorization.
   */
  setBlobSettings(settings: BlobSettings): Promise<void>;
  /** A key of the stamp, by whose name blobs are encrypted (`x-ms-encryption-scope`). It stays for good. */
  createEncryptionScope(name: string): Promise<void>;
  /** While a scope is disabled, what is encrypted under it is neither read nor written. */
  setEncryptionScopeState(name: string, state: { readonly disabled: boolean }): Promise<void>;
  /** Figures of its roles, by name: for each the page that a process of a cluster serves as `/metrics` (text format of Prometheus). */
  metrics(): Readonly<Record<string, string>>;
  /** Ends every role cleanly. Idempotent. */
  stop(): Promise<void>;
}

const account = "devstoreaccount1";
const accountKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const host = "127.0.0.1";
/** Services that have a door. */
const services = ["blob", "queue", "table"] as const;
type ServiceName = (typeof services)[number];

/** Resolves when it serves. Throws FailureError, with whom it waited for, when that takes longer than `readyTimeoutMs`. */
export async function startStamp(options: StartOptions = {}): Promise<Stamp> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "stamp-"));
  mkdirSync(dataDir, { recursive: true });
  const logger = options.logger ?? silentLogger;
  const listen = (service: ServiceName): string => {
    const address = `${host}:${options.ports?.[service] ?? 0}`;
    return isLoopback(address) ? address : `${host}:0`;
  };
  const roles = plan({
    init: !existsSync(join(dataDir, "lock-service-1")),
    extentNodes: options.extentNodes ?? 3,
    partitionServers: options.partitionServers ?? 1,
    blobListen: listen("blob"),
    queueListen: listen("queue"),
    tableListen: listen("table"),
    oidc: options.oidc,
    copySources: options.copySources ?? [],
  });
  const network = new InProcessNetwork();
  const started: { readonly name: string; readonly role: Role; readonly world: World }[] = [];
  const doors = new Map<ServiceName, HttpListener>();
  let stopping: Promise<void> | undefined;

  const metrics = (): Record<string, string> =>
    Object.fromEntries(started.map(({ name, role }) => [name, metricsText(name.replace(/-\d+$/, ""), name, role)]));

  const end = async (): Promise<void> => {
    for (const door of doors.values()) await door.close();
    for (const { role, world } of started.splice(0).reverse()) {
      await role.stop();
      await world.transport.close();
    }
    if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
  };
  const stop = (): Promise<void> => {
    stopping ??= end();
    return stopping;
  };

  // Timers of the ports keep no process alive; until the HTTP door is open this does.
  const alive = setInterval(() => {}, 1_000);
  try {
    for (const { name, make } of roles) {
      const world = nodeWorld({
        dataDir: join(dataDir, name),
        name,
        logger: logger.child({ name }),
        transport: network.transport(name),
        onFatal: (reason) => {
          throw new Error(`${name} can't go on: ${reason}`);
        },
      });
      assertAllRules(world);
      started.push({ name, role: make(world), world });
    }
    const frontEnd = started.at(-1)?.role as FrontEndRole;
    const timeoutMs = options.readyTimeoutMs ?? 20_000;
    // The lock service first: whoever asks it before it serves asks again only later.
    const [lockService, ...others] = started;
    await lockService?.role.start();
    await ready(started.slice(0, 1), timeoutMs);
    await Promise.all(others.map(({ role }) => role.start()));
    await ready(started, timeoutMs);
    const how = { logger, ...(options.tls && { tls: options.tls }) };
    for (const service of services) doors.set(service, await serveHttp(frontEnd[service], { listen: listen(service), ...how }));
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearInterval(alive);
  }
  const operate = async (change: (accounts: Client<typeof Accounts>, options: CallOptions) => Promise<Outcome<unknown>>): Promise<void> => {
    unwrap(await change(network.transport("operator").client(partitionManager, Accounts), { timeoutMs: 10_000 }));
    (started.at(-1)?.role as FrontEndRole | undefined)?.forgetAccount(account);
  };
  const scheme = options.tls === undefined ? "http" : "https";
  const endpoint = (service: ServiceName): string => `${scheme}://${doors.get(service)?.address}/${account}`;
  const endpoints = { blob: endpoint("blob"), queue: endpoint("queue"), table: endpoint("table") };
  return {
    endpoints,
    connectionString:
      `DefaultEndpointsProtocol=${scheme};AccountName=${account};AccountKey=${accountKey};` +
      `BlobEndpoint=${endpoints.blob};QueueEndpoint=${endpoints.queue};TableEndpoint=${endpoints.table};`,
    dataDir,
    setBlobSettings: (settings) => operate((accounts, options) => accounts.setBlobSettings({ account, ...settings }, options)),
    createEncryptionScope: (scope) => operate((accounts, options) => accounts.createEncryptionScope({ account, scope }, options)),
    setEncryptionScopeState: (scope, { disabled }) =>
      operate((accounts, options) => accounts.setEncryptionScopeState({ account, scope, disabled }, options)),
    metrics,
    stop,
  };
}

async function ready(
  started: readonly { readonly name: string; readonly role: Role; readonly world: World }[],
  timeoutMs: number,
): Promise<void> {
  const clock = started[0]?.world.clock;
  if (clock === undefined) return;
  const deadlineMs = clock.monotonicMs() + timeoutMs;
  for (;;) {
    const waiting = started.filter(({ role }) => !role.status.ready);
    if (waiting.length === 0) return;
    if (clock.monotonicMs() >= deadlineMs) {
      const who = waiting.map(({ name, role }) => `${name} waits for ${role.status.waitingFor.join(", ") || "itself"}`).join("; ");
      throw new FailureError({ code: "deadlineExceeded", reason: "notReady", message: `the stamp is not ready: ${who}`, applied: "no" });
    }
    await sleep(clock, 2);
  }
}

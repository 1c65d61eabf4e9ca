/**
 * A whole stamp in one process, as a library: every role of the cluster with the same code, connected by direct calls instead of gRPC, over
 * memory or the real disk. For a test suite or a small machine; what it does not give is survival of its process.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { type Outcome, unwrap } from "@stamp/base";
import { checkInit, type FaultRules, type Init, loadInit, makeAccounts } from "@stamp/front-end";
import { type CallOptions, type Client, type Logger, silentLogger, type Tracer } from "@stamp/ports";
import { nodeWrittenFiles } from "@stamp/ports-node";
import { Accounts } from "@stamp/wire";
import { checkOptions } from "./check-options.ts";
import { DataFolder } from "./data-folder.ts";
import { Doors, type ServiceName } from "./doors.ts";
import { Generation } from "./generation.ts";
import type { HostedRole } from "./life/hosted-role.ts";
import { type OidcSettings, type PlannedRole, partitionManager, plan } from "./plan.ts";
import type { Faults, Stamp, StampOptions } from "./types.ts";

export interface StartOptions extends StampOptions {
  /** Bearer tokens; undefined: none are taken. */
  readonly oidc?: OidcSettings;
  /** Other places that blobs may be copied from, as the front-end's configuration has them; undefined: there are none. */
  readonly copySources?: readonly string[];
  readonly logger?: Logger;
  /** Returns the tracer of a role; undefined: nothing is traced. */
  readonly tracerOf?: (name: string) => Tracer;
}

/** A temporary folder, and three replicas as in a cluster. */
export const threeOnDisk = { storage: "disk", replicas: 3 } as const satisfies StampOptions;

const account = "devstoreaccount1";
const accountKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const host = "127.0.0.1";
const readyTimeoutDefaultMs = 20_000;
const operatorTimeoutMs = 10_000;

/** Resolves when it serves. Throws FailureError, with what it waits for, when that takes longer than `readyTimeoutMs`. */
export async function startStamp(options: StartOptions = {}): Promise<Stamp> {
  const stamp = new EmbeddedStamp(options);
  await stamp.begin();
  return stamp;
}

class EmbeddedStamp implements Stamp {
  readonly dataDir: string | undefined;
  readonly roles: readonly string[];
  readonly faults: Faults;
  readonly #options: StartOptions;
  readonly #replicas: number;
  readonly #lockServices: number;
  readonly #folder: DataFolder | undefined;
  readonly #isTemporary: boolean;
  readonly #scheme: "http" | "https";
  readonly #doors: Doors;
  #generation: Generation | undefined;
  /** Start, resets and stop come one after another; changes of roles and settings wait for those before them only. */
  #last: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | undefined;

  constructor(options: StartOptions) {
    checkOptions(options);
    this.#options = options;
    this.#isTemporary = options.dataDir === undefined && options.storage === "disk";
    this.dataDir = this.#isTemporary ? mkdtempSync(join(tmpdir(), "stamp-")) : options.dataDir;
    this.#folder = this.dataDir === undefined ? undefined : new DataFolder(this.dataDir);
    try {
      this.#replicas = heldOr(options.replicas, this.#folder, "replicas") ?? 1;
      this.#lockServices = heldOr(options.lockServices, this.#folder, "lockServices") ?? this.#replicas;
    } catch (error) {
      this.#folder?.giveBack();
      throw error;
    }
    this.roles = this.#plan().map(({ name }) => name);
    this.faults = {
      add: (rule) => this.#withFaults((rules) => unwrap(rules.add(rule))),
      list: () => this.#withFaults((rules) => rules.list()),
      remove: (id) => this.#withFaults((rules) => rules.remove(id)),
    };
    this.#scheme = options.tls === undefined ? "http" : "https";
    this.#doors = new Doors((service) => `${host}:${options.ports?.[service] ?? 0}`, {
      behind: () => {
        const { hasServed, frontEndRole: frontEnd, frontEnd: { life } = {} } = this.#generation ?? {};
        return !hasServed || frontEnd === undefined || life === undefined ? undefined : { frontEnd, life };
      },
      tls: options.tls,
      logger: options.logger ?? silentLogger,
    });
  }

  get endpoints(): Stamp["endpoints"] {
    const endpoint = (service: ServiceName): string => `${this.#scheme}://${this.#doors.addressOf(service)}/${account}`;
    return { blob: endpoint("blob"), queue: endpoint("queue"), table: endpoint("table"), file: endpoint("file"), dfs: endpoint("dfs") };
  }

  get connectionString(): string {
    const { blob, queue, table, file } = this.endpoints;
    return (
      `DefaultEndpointsProtocol=${this.#scheme};AccountName=${account};AccountKey=${accountKey};` +
      `BlobEndpoint=${blob};QueueEndpoint=${queue};TableEndpoint=${table};FileEndpoint=${file};`
    );
  }

  /** Starts the stamp for the first time. If it fails, nothing is left. */
  async begin(): Promise<void> {
    try {
      await this.#change(async () => {
        if (this.#folder?.isNew) this.#folder.empty();
        this.#generation = this.#newGeneration();
        await this.#generation.start();
        await this.#initialise(this.#generation);
        this.#folder?.made();
        await this.#doors.open();
      });
    } catch (error) {
      // Its own failure is of no use to the caller.
      await this.stop().catch(() => {});
      throw error;
    }
  }

  async #initialise(generation: Generation): Promise<void> {
    const { init } = this.#options;
    if (init === undefined) return;
    const inits = typeof init === "string" ? await loadInit(nodeWrittenFiles, resolve(init)) : [await checkedInit(init)];
    const accounts = generation.operator().client(partitionManager, Accounts);
    const call = { timeoutMs: operatorTimeoutMs };
    const maker = {
      get: (name: string) => accounts.get({ account: name }, call),
      create: (asked: { account: string; keys: string[] }) => accounts.create(asked, call),
      createHierarchical: (asked: { account: string; keys: string[] }) => accounts.createHierarchical(asked, call),
    };
    await makeAccounts(maker, inits, (what) => this.#options.logger?.warn(what));
    await generation.frontEndRole?.initialise(async () => inits, nodeWrittenFiles);
  }

  reset(): Promise<void> {
    return this.#change(async () => {
      const before = this.#generation;
      // A folder has room for one stamp.
      if (this.#folder !== undefined) {
        await before?.end("at once");
        this.#folder.empty();
      }
      const next = this.#newGeneration();
      if (this.#folder !== undefined) this.#generation = next;
      try {
        await next.start();
        await this.#initialise(next);
        this.#folder?.made();
      } catch (error) {
        await next.end("at once");
        throw error;
      }
      this.#generation = next;
      await before?.end("at once");
      await this.#doors.open();
    });
  }

  pause(role: string): Promise<void> {
    return this.#changeRole(role, async (hosted) => hosted.pause(), "running", "pause");
  }

  resume(role: string): Promise<void> {
    return this.#changeRole(role, async (hosted) => hosted.resume(), "paused", "resume");
  }

  kill(role: string): Promise<void> {
    return this.#changeRole(role, async (hosted, generation) => {
      // Connections of a killed process break, and nobody listens at its ports.
      await Promise.all([hosted.kill(), hosted === generation.frontEnd ? this.#doors.close(0) : undefined]);
    });
  }

  start(role: string): Promise<void> {
    const begun = async (hosted: HostedRole, generation: Generation): Promise<void> => {
      await generation.startRole(hosted);
      // It may have been killed meanwhile.
      if (hosted === generation.frontEnd && hosted.state !== "down") await this.#doors.open();
    };
    return this.#changeRole(role, begun, "down", "start");
  }

  setBlobSettings(settings: Parameters<Stamp["setBlobSettings"]>[0]): Promise<void> {
    return this.#operate((accounts, options) => accounts.setBlobSettings({ account, ...settings }, options));
  }

  createEncryptionScope(scope: string): Promise<void> {
    return this.#operate((accounts, options) => accounts.createEncryptionScope({ account, scope }, options));
  }

  setEncryptionScopeState(scope: string, { disabled }: { readonly disabled: boolean }): Promise<void> {
    return this.#operate((accounts, options) => accounts.setEncryptionScopeState({ account, scope, disabled }, options));
  }

  metrics(): Readonly<Record<string, string>> {
    return this.#generation?.metrics() ?? {};
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#last.then(() => keptAlive(() => this.#end()));
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #end(): Promise<void> {
    try {
      // Requests that a rule delays would hold up the end, and be cut.
      this.#generation?.frontEndRole?.faults?.remove();
      await this.#doors.close();
      // Nobody misses what is only in memory.
      await this.#generation?.end(this.dataDir === undefined ? "at once" : "cleanly");
    } finally {
      this.#generation = undefined;
      this.#folder?.giveBack();
      if (this.#isTemporary && this.dataDir !== undefined) rmSync(this.dataDir, { recursive: true, force: true });
    }
  }

  #plan(): readonly PlannedRole[] {
    const { partitionServers = 1, oidc, copySources = [] } = this.#options;
    const init = this.#folder?.isNew ?? true;
    const { hierarchicalNamespace = false } = this.#options;
    return plan({
      init,
      replicas: this.#replicas,
      lockServices: this.#lockServices,
      partitionServers,
      oidc,
      copySources,
      hierarchicalNamespace,
    });
  }

  #newGeneration(): Generation {
    return new Generation(this.#plan(), {
      dataDir: this.dataDir,
      memoryBytesMax: totalmem(),
      logger: this.#options.logger ?? silentLogger,
      readyTimeoutMs: this.#options.readyTimeoutMs ?? readyTimeoutDefaultMs,
      tracerOf: this.#options.tracerOf,
    });
  }

  #change<T>(work: () => Promise<T>): Promise<T> {
    const changed = this.#afterLast(work);
    this.#last = changed.catch(() => {});
    return changed;
  }

  /** Does not wait for other changes of this kind: one that waits for a paused role must not hold up its `resume`. */
  #afterLast<T>(work: () => Promise<T>): Promise<T> {
    if (this.#stopping !== undefined) return Promise.reject(new Error("the stamp is stopped: start another one"));
    return this.#last.then(() => keptAlive(work));
  }

  /** `from`: state in which the role has to be for `verb`; undefined: any. */
  #changeRole(
    name: string,
    work: (role: HostedRole, generation: Generation) => Promise<void>,
    from?: HostedRole["state"],
    verb = "",
  ): Promise<void> {
    return this.#afterLast(async () => {
      const generation = this.#generation;
      const role = generation?.roles.find((each) => each.name === name);
      if (generation === undefined || role === undefined) throw new Error(`there is no role ${name}; there are: ${this.roles.join(", ")}`);
      if (from !== undefined && role.state !== from) throw new Error(`can't ${verb} ${name}: it is ${role.state}, not ${from}`);
      await work(role, generation);
    });
  }

  #withFaults<T>(work: (rules: FaultRules) => T): Promise<T> {
    return this.#afterLast(async () => {
      const rules = this.#generation?.frontEndRole?.faults;
      if (rules === undefined) throw new Error("front-end-1 is down, and fault rules are in it: start it first");
      return work(rules);
    });
  }

  #operate(change: (accounts: Client<typeof Accounts>, options: CallOptions) => Promise<Outcome<unknown>>): Promise<void> {
    return this.#afterLast(async () => {
      const generation = this.#generation as Generation;
      unwrap(await change(generation.operator().client(partitionManager, Accounts), { timeoutMs: operatorTimeoutMs }));
      generation.frontEndRole?.forgetAccount(account);
    });
  }
}

const checkedInit = (value: unknown): Promise<Init> =>
  checkInit(nodeWrittenFiles, {
    name: '"init"',
    folder: process.cwd(),
    value,
    where: (path) => `"init"${path.map((key) => `.${String(key)}`).join("")}: `,
  });

/** Returns the number that the folder has, or else the wanted one. Throws if both are there and differ. */
function heldOr(asked: number | undefined, folder: DataFolder | undefined, option: "replicas" | "lockServices"): number | undefined {
  const held = folder?.[option] ?? 0;
  if (held === 0) return asked;
  if (asked !== undefined && asked !== held) {
    const what = option === "replicas" ? "data in" : "its metadata in";
    const unit = option === "replicas" ? "replicas" : `lock service${held === 1 ? "" : "s"}`;
    throw new Error(`${folder?.path} has ${what} ${held} ${unit}: leave "${option}" out, or name another folder`);
  }
  return held;
}

/** Timers of the roles keep no process alive, and the doors may be closed while `work` is done. */
async function keptAlive<T>(work: () => Promise<T>): Promise<T> {
  const alive = setInterval(() => {}, 1_000);
  try {
    return await work();
  } finally {
    clearInterval(alive);
  }
}

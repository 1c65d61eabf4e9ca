/** One role of the stamp inside this process, over its starts and ends. */
import { join } from "node:path";
import { allRules } from "@stamp/base";
import { type Logger, type Role, type Tracer, type Transport, tracedTransport, type World } from "@stamp/ports";
import { assertAllRules, nodeWorld } from "@stamp/ports-node";
import { MemoryDisk } from "../memory/disk.ts";
import { MemoryKeyValueStores } from "../memory/key-value.ts";
import type { PlannedRole } from "../plan.ts";
import { EndedError, RoleLife } from "./life.ts";
import { type LivedWorld, livedWorld } from "./lived-world.ts";

/** State that the role was asked to have. It stays while the role starts again after a fatal error. */
export type RoleState = "running" | "paused" | "down";

export interface HostedOptions {
  readonly planned: PlannedRole;
  /** Folder of the stamp; undefined: the role keeps its data in memory. */
  readonly dataDir: string | undefined;
  /** Bound of the memory for the role's data, in bytes. */
  readonly memoryBytesMax: number;
  readonly transport: (name: string) => Transport;
  readonly logger: Logger;
  /** Returns the tracer of the role; undefined: nothing is traced. */
  readonly tracerOf?: ((name: string) => Tracer) | undefined;
}

/** Time between the end of a role that must not go on and its next start: as the supervisor of a cluster. */
const restartAfterMs = 200;

interface Start {
  readonly life: RoleLife;
  readonly role: Role;
  readonly lived: LivedWorld;
}

export class HostedRole {
  readonly name: string;
  readonly #options: HostedOptions;
  readonly #storage: Pick<World, "disk" | "keyValue"> | undefined;
  #start: Start | undefined;
  #state: RoleState = "down";
  /** Closing of what the last start had open. */
  #closed: Promise<void> = Promise.resolve();
  #restart: NodeJS.Timeout | undefined;
  /** Number of starts and ends of the role. Work that began before the last of them goes no further. */
  #starts = 0;
  /** Reason why the role ended by itself since it was asked to start; undefined: it did not. */
  #fatal: string | undefined;

  constructor(options: HostedOptions) {
    this.name = options.planned.name;
    this.#options = options;
    if (options.dataDir === undefined)
      this.#storage = { disk: new MemoryDisk(options.memoryBytesMax), keyValue: new MemoryKeyValueStores() };
  }

  get state(): RoleState {
    return this.#state;
  }

  get role(): Role | undefined {
    return this.#start?.role;
  }

  get life(): RoleLife | undefined {
    return this.#start?.life;
  }

  /** Returns why the role is not ready, in words. */
  get waitsFor(): string {
    const waitingFor = this.role?.status.waitingFor.join(", ") ?? "";
    return waitingFor || (this.#fatal === undefined ? "itself" : `its next start (it ended: ${this.#fatal})`);
  }

  /** Resolves when the role has begun, or has ended meanwhile; it may wait for others. If it throws, the role is down. */
  async start(): Promise<void> {
    this.#state = "running";
    this.#fatal = undefined;
    const beginning = this.#begin();
    const starts = this.#starts;
    try {
      await beginning;
    } catch (error) {
      if (starts === this.#starts) await this.kill();
      throw error;
    }
  }

  async #begin(): Promise<void> {
    clearTimeout(this.#restart);
    const starts = ++this.#starts;
    await this.#closed;
    // It was killed meanwhile, or started again.
    if (starts !== this.#starts) return;
    const life = new RoleLife();
    this.#start = this.#make(life);
    if (this.#state === "paused") life.pause();
    const { role } = this.#start;
    await untilEnded(life, () => role.start());
  }

  #make(life: RoleLife): Start {
    const { planned, dataDir = "", transport, logger, tracerOf } = this.#options;
    const tracer = tracerOf?.(this.name);
    const own = transport(this.name);
    const lived = livedWorld(
      {
        ...(tracer && { tracer }),
        ...nodeWorld({
          dataDir: join(dataDir, this.name),
          name: this.name,
          logger: logger.child({ name: this.name }),
          transport: tracer === undefined ? own : tracedTransport(own, tracer),
          rules: allRules,
          ...(this.#storage === undefined ? {} : { storage: this.#storage }),
          onFatal: (reason) => {
            if (this.life === life) this.#startAgain(reason);
          },
        }),
      },
      life,
    );
    assertAllRules(lived.world);
    return { life, role: planned.make(lived.world), lived };
  }

  pause(): void {
    this.life?.pause();
    this.#state = "paused";
  }

  resume(): void {
    this.#state = "running";
    this.life?.resume();
  }

  /** Ends the role as SIGKILL does, also during its start. Resolves when nothing of it is open. */
  async kill(): Promise<void> {
    this.#state = "down";
    await this.#end();
  }

  async #end(): Promise<void> {
    clearTimeout(this.#restart);
    this.#starts += 1;
    const start = this.#start;
    this.#start = undefined;
    if (start !== undefined) {
      start.life.end();
      this.#closed = start.lived.closeAll();
    }
    await this.#closed;
  }

  /** Ends the role as a process that is asked to end. If it throws, nothing of the role is left. */
  async leave(): Promise<void> {
    const start = this.#start;
    try {
      if (start !== undefined) await untilEnded(start.life, () => start.role.stop());
    } finally {
      await this.kill();
    }
  }

  /** Ends the role and starts it again later, until it is killed. */
  #startAgain(reason: string): void {
    this.#fatal = reason;
    void this.#end();
    this.#restart = setTimeout(() => {
      const beginning = this.#begin();
      const starts = this.#starts;
      beginning.catch((error: unknown) => {
        this.#options.logger.error("a role fails to start again", { name: this.name, error });
        if (starts === this.#starts) this.#startAgain(String(error));
      });
    }, restartAfterMs);
    this.#restart.unref();
  }
}

/** Resolves also when the role ends before `work` is done. */
async function untilEnded(life: RoleLife, work: () => Promise<void>): Promise<void> {
  try {
    await life.outside(work);
  } catch (error) {
    if (!(error instanceof EndedError)) throw error;
  }
}

/** One role of the stamp inside this process, over its starts and ends. */
import { join } from "node:path";
import { allRules } from "@stamp/base";
import type { Logger, Role, Transport, World } from "@stamp/ports";
import { assertAllRules, nodeWorld } from "@stamp/ports-node";
import { MemoryDisk } from "../memory/disk.ts";
import { MemoryKeyValueStores } from "../memory/key-value.ts";
import type { PlannedRole } from "../plan.ts";
import { EndedError, Life } from "./life.ts";
import { type LivedWorld, livedWorld } from "./lived-world.ts";

export type RoleState = "running" | "paused" | "down";

export interface HostedOptions {
  readonly planned: PlannedRole;
  /** Folder of the stamp; undefined: the role keeps its data in memory. */
  readonly dataDir: string | undefined;
  /** Most memory for its data, in bytes. */
  readonly memoryBytesMax: number;
  readonly transport: (name: string) => Transport;
  readonly logger: Logger;
}

/** Time between the end of a role that must not go on and its next start: as the supervisor of a cluster. */
const restartAfterMs = 200;

interface Start {
  readonly life: Life;
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

  get life(): Life | undefined {
    return this.#start?.life;
  }

  /** Resolves when the role has begun; it may wait for others. */
  async start(): Promise<void> {
    clearTimeout(this.#restart);
    await this.#closed;
    const { planned, dataDir = "", transport, logger } = this.#options;
    const life = new Life();
    const lived = livedWorld(
      nodeWorld({
        dataDir: join(dataDir, this.name),
        name: this.name,
        logger: logger.child({ name: this.name }),
        transport: transport(this.name),
        rules: allRules,
        ...(this.#storage === undefined ? {} : { storage: this.#storage }),
        onFatal: () => this.#mustNotGoOn(life),
      }),
      life,
    );
    assertAllRules(lived.world);
    const role = planned.make(lived.world);
    this.#start = { life, role, lived };
    this.#state = "running";
    await untilEnded(life, () => role.start());
  }

  pause(): void {
    this.life?.pause();
    this.#state = "paused";
  }

  resume(): void {
    this.#state = "running";
    this.life?.resume();
  }

  /** Ends it as SIGKILL does. Resolves when nothing of it is open any more. */
  async kill(): Promise<void> {
    clearTimeout(this.#restart);
    const start = this.#start;
    this.#start = undefined;
    this.#state = "down";
    if (start !== undefined) {
      start.life.end();
      this.#closed = start.lived.closeAll();
    }
    await this.#closed;
  }

  /** Leaves as the role does when its process is asked to end. */
  async leave(): Promise<void> {
    const start = this.#start;
    if (start !== undefined) await untilEnded(start.life, () => start.role.stop());
    await this.kill();
  }

  #mustNotGoOn(life: Life): void {
    if (this.life !== life) return;
    void this.kill();
    const failed = (error: unknown): void => this.#options.logger.error("a role does not start again", { name: this.name, error });
    this.#restart = setTimeout(() => void this.start().catch(failed), restartAfterMs);
    this.#restart.unref();
  }
}

/** Resolves also when the role ends before `work` is done. */
async function untilEnded(life: Life, work: () => Promise<void>): Promise<void> {
  try {
    await life.outside(work);
  } catch (error) {
    if (!(error instanceof EndedError)) throw error;
  }
}

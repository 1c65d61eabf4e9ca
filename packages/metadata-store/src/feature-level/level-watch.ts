/**
 * The feature level of the stamp, as one process knows it. The process announces to the leading stream manager what it reads and writes, again and
 * again, and is told the level under which it may write.
 *
 * Invariants:
 *  - A level is noted in the folder's marker, durably, before the process writes under it. So a release that does not know the level refuses to start
 *    in the folder (`packages/ports/src/format-marker.ts`).
 *  - The level of a process only rises. It never forgets one that it has noted, also when the metadata store was put back.
 *  - A process that meets a level above its own ends: what others write now, it would take for damage or not see.
 */
import { featureLevel, levelAllows, newerFormat, release } from "@stamp/base";
import { type Address, jittered, notedFeatureLevel, pause, raiseFeatureLevel, type World } from "@stamp/ports";
import { FeatureLevels, toWire } from "@stamp/wire";
import { LeaderCalls } from "../leader-calls.ts";
import { processVersions } from "./process-versions.ts";

/** Time between two announcements, in milliseconds. */
const announceEveryMs = 10_000;
/** While the level is not known, or was not answered. */
const announceAgainMs = 1_000;
const timeoutMs = 3_000;

export interface Announcer {
  readonly lockService: Address;
  readonly role: string;
  readonly name: string;
  readonly incarnation: number;
}

export class LevelWatch {
  readonly #world: World;
  readonly #stop = new AbortController();
  #level: number | undefined;
  #noting: Promise<void> = Promise.resolve();

  constructor(world: World) {
    this.#world = world;
  }

  /** Returns undefined while the level was not heard and none is noted. */
  get level(): number | undefined {
    return this.#level;
  }

  /** True if what `level` brings may be written. */
  allows(level: number): boolean {
    return levelAllows(this.#world.rules, this.#level ?? 0, level);
  }

  /** Reads what is noted in the folder, then announces until `stop`. Call it when the folder is claimed. */
  async start(announcer: Announcer): Promise<void> {
    const noted = await notedFeatureLevel(this.#world);
    if (noted > 0) this.#level = noted;
    void this.#announce(announcer);
  }

  /** Does not wait for an answer: who leads may be away. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#noting;
  }

  async #announce({ lockService, role, name, incarnation }: Announcer): Promise<void> {
    const world = this.#world;
    const calls = new LeaderCalls(world, { lockService, leaseName: "stream-manager" });
    while (!this.#stop.signal.aborted) {
      const request = { role, name, incarnation: toWire(incarnation), release, versions: processVersions(this.#level) };
      const answer = await calls.call(
        timeoutMs,
        (address, leftMs) => world.transport.client(address, FeatureLevels).announce(request, { timeoutMs: leftMs }),
        // A stream manager of a release before feature levels.
        { idempotent: true, mayLackMethod: true },
      );
      if (this.#stop.signal.aborted) return;
      if (answer.ok) {
        this.#noting = this.#heard(answer.value.level).catch((error: unknown) => {
          // A full disk, say. The process goes on under the level that it has noted.
          world.logger.error("the feature level can't be noted in the data folder", { level: answer.value.level, error: String(error) });
        });
        await this.#noting;
      } else calls.lookAgain();
      const known = answer.ok && this.#level !== undefined;
      await pause(world.clock, jittered(world.random, known ? announceEveryMs : announceAgainMs), this.#stop.signal);
    }
  }

  async #heard(level: number): Promise<void> {
    const world = this.#world;
    if (level > featureLevel) {
      const refusal = newerFormat("the stamp", { format: "feature-level", version: level });
      world.logger.error("the stamp has a feature level that this release does not know", { level, known: featureLevel });
      this.#stop.abort();
      world.fatal(refusal.failure.message);
      return;
    }
    if (level < (this.#level ?? 0)) return;
    if (level > (this.#level ?? 0)) {
      await raiseFeatureLevel(world, level);
      world.logger.info("the stamp has a new feature level", { level, before: this.#level ?? 0 });
    }
    this.#level = level;
  }
}

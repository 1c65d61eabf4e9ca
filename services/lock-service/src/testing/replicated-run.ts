/** The scene of the test that runs, of lock services that replicate the metadata store; and a writer who remembers what was acknowledged. */
import { strict as assert } from "node:assert";
import { fromUtf8, type RuleName, rulesWithout, unwrap, utf8 } from "@stamp/base";
import { type LeaseKeeper, MetadataClient } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { type ReplicatedScene, replicatedScene } from "./replicated-harness.ts";
import { leaderOf, readyWithinMs, servingIn } from "./several.ts";

export let scene: ReplicatedScene;

export function begin(...options: Parameters<typeof replicatedScene>): ReplicatedScene {
  scene = replicatedScene(...options);
  return scene;
}

export const serving = (): Promise<void> => servingIn(scene);
export const followers = (): string[] => scene.names.filter((name) => name !== scene.active());
/** Every member has its standing, and what the leader has committed. */
export const settled = (): Promise<void> =>
  scene.sim.until(
    () => {
      const all = scene.names.map((name) => scene.facts(name));
      return scene.active() !== undefined && all.every((facts) => facts?.full === true && facts.applied === all[0]?.applied);
    },
    readyWithinMs,
    "all members have caught up",
  );

interface Setting {
  readonly without?: readonly RuleName[];
  readonly settings?: object;
  readonly names?: readonly string[];
}

export async function inScene(
  seed: number,
  work: () => Promise<void>,
  { without = [], settings = {}, names }: Setting = {},
): Promise<void> {
  begin({ seed, timeLimitMs: 900_000, rules: rulesWithout(...without) }, names, settings);
  await scene.sim.run(async () => {
    await serving();
    await work();
  });
}

/** Stops members, and makes their folders new ones. */
export function emptied(names: readonly string[]): void {
  for (const name of names) {
    scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
    scene.sim.keyValue(name).wipe();
    scene.sim.disk(name).wipe();
  }
}

/** Writes one key after another, and remembers what was acknowledged. */
export class Writer {
  readonly acknowledged = new Map<string, string>();
  readonly #store: MetadataClient;
  readonly #keeper: LeaseKeeper;
  lost = 0;
  longestMs = 0;
  #count = 0;
  #epoch = 0;

  constructor(world: World) {
    this.#store = new MetadataClient(world, scene.list);
    this.#keeper = leaderOf(scene.list, world, "leader", 1, () => {
      this.lost += 1;
    });
  }

  async begin(): Promise<void> {
    this.#epoch = await this.#keeper.acquire();
  }

  async write(times: number, bytes = 10): Promise<void> {
    for (let i = 0; i < times; i++) {
      this.#count += 1;
      const key = `k/${this.#count}`;
      const text = `${this.#count} `.padEnd(bytes, "x");
      const startedMs = scene.sim.nowMs;
      for (let tries = 0; ; tries++) {
        assert.ok(tries < 60, `key ${key} is never taken`);
        const fence = { leaseName: "leader", leaseEpoch: this.#epoch };
        const written = await this.#store.transact(
          { fence, conditions: [{ key, version: 0 }], writes: [{ key, value: utf8(text) }] },
          8_000,
        );
        // A conflict is this writer's own attempt, whose answer was lost.
        if (written.ok || written.failure.reason === "conflict") break;
        await scene.sim.sleep(100);
      }
      this.longestMs = Math.max(this.longestMs, scene.sim.nowMs - startedMs);
      this.acknowledged.set(key, text);
    }
  }

  /** Everything that was acknowledged is there. */
  async check(): Promise<void> {
    const keys = [...this.acknowledged.keys()];
    for (let at = 0; at < keys.length; at += 500) {
      const entries = unwrap(await this.#store.get(keys.slice(at, at + 500), 8_000));
      for (const { key, value } of entries) assert.equal(fromUtf8(value ?? new Uint8Array(0)), this.acknowledged.get(key), key);
    }
  }

  release(): Promise<void> {
    return this.#keeper.release();
  }
}

export async function writing(work: (writer: Writer) => Promise<void>): Promise<void> {
  const writer = new Writer(scene.sim.world("writer"));
  await writer.begin();
  await work(writer);
  await writer.check();
  await writer.release();
}

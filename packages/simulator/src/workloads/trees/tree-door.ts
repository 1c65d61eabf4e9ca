/** A process that runs operations on trees as a front-end does: its map, its router, its coordinators and its collector, without HTTP. */
import { MapCache, Router, Trees } from "@stamp/front-end";
import type { TreeName } from "@stamp/objects";
import type { Role, RoleStatus, World } from "@stamp/ports";
import { collect, type Machine, type MachineContext, type Result } from "@stamp/tree";

const settings = { mapWaitMs: 5_000, readAttemptTimeoutMs: 1_000, requestTimeoutMs: 5_000 };

export class TreeDoor implements Role {
  readonly address: string;
  readonly #world: World;
  readonly #map: MapCache;
  readonly #router: Router;
  readonly #trees: Trees;

  constructor(world: World, name: string, lockService: string) {
    this.address = name;
    this.#world = world;
    this.#map = new MapCache(world, { lockService, ...settings });
    this.#router = new Router(world, this.#map, settings);
    this.#trees = new Trees(world, this.#router, settings);
  }

  async start(): Promise<void> {
    this.#map.start();
  }

  async stop(): Promise<void> {
    this.#trees.end();
    await this.#map.stop();
  }

  get status(): RoleStatus {
    const ready = this.#map.current !== undefined;
    return { ready, waitingFor: ready ? [] : ["the partition map"], state: "serving", facts: {} };
  }

  /** Makes the filesystem if it is not there. Returns its tree; undefined: no answer. */
  async filesystem(account: string, filesystem: string): Promise<TreeName | undefined> {
    const limits = this.#limits(settings.requestTimeoutMs);
    const name = { account, container: filesystem };
    await this.#router.execute({ case: "createContainer", value: { ...name, metadata: {}, publicAccess: "" } }, limits);
    const found = await this.#router.execute({ case: "getContainer", value: { ...name, conditions: {} } }, limits);
    if (!found.ok || found.value.case !== "container") return undefined;
    return { account, filesystem, incarnation: Number(found.value.value.incarnation) };
  }

  run<T>(tree: TreeName, make: (context: MachineContext) => Machine<T>, timeoutMs: number): Promise<Result<T>> {
    return this.#trees.run(tree, make, this.#limits(timeoutMs));
  }

  /** Has what is below the directory taken in the background, as after its removal. */
  collect(tree: TreeName, directory: string): void {
    this.#trees.collect(tree, directory);
  }

  /** One turn of the collector. */
  async collectSome(tree: TreeName, directory: string, entriesMax: number): Promise<void> {
    await this.run(tree, (context) => collect(context, directory, entriesMax), settings.requestTimeoutMs);
  }

  #limits(timeoutMs: number): { readonly deadlineMs: number } {
    return { deadlineMs: this.#world.clock.monotonicMs() + timeoutMs };
  }
}

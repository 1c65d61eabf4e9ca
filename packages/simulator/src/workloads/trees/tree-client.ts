/** A client of the tree: asks any of the doors, by paths, and tells the judge what it saw. */
import type { Prng } from "@stamp/base";
import { rootId } from "@stamp/front-end";
import type { NodeAddress, Step, StepAnswer, TreeName, TreeRow } from "@stamp/objects";
import { within } from "@stamp/ports";
import { create, type ListPage, list, type Machine, type MachineContext, type Result, reach, remove, rename } from "@stamp/tree";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import type { TreeDoor } from "./tree-door.ts";
import type { KnownNode, TreeJudge } from "./tree-judge.ts";

const pauseMaxMs = 500;
const depthMax = 3;
const pagesMax = 60;
/** Time that a client waits beyond the time for its operation, in milliseconds. */
const answerMs = 1_000;
const readTimeoutMs = 20_000;

export interface TreeClientOptions {
  readonly names: readonly string[];
  /** Processes that coordinate. */
  readonly doors: readonly string[];
  /** True if directories are removed with what is in them, too. */
  readonly removesTrees: boolean;
  readonly count: (what: string) => void;
}

export class TreeClient {
  readonly #sim: Simulation;
  readonly #name: string;
  readonly #tree: TreeName;
  readonly #judge: TreeJudge;
  readonly #options: TreeClientOptions;
  readonly #prng: Prng;

  constructor(sim: Simulation, name: string, tree: TreeName, judge: TreeJudge, options: TreeClientOptions) {
    sim.world(name);
    this.#sim = sim;
    this.#name = name;
    this.#tree = tree;
    this.#judge = judge;
    this.#options = options;
    this.#prng = sim.prng.fork();
  }

  async work(endMs: number): Promise<void> {
    const prng = this.#prng;
    while (this.#sim.nowMs < endMs) {
      await this.#sim.sleep(prng.float() ** 2 * pauseMaxMs);
      const path = this.#path();
      const dice = prng.below(100);
      if (dice < 25) {
        const kind = prng.chance(0.7) ? "directory" : "file";
        await this.#ask("create", (context) => create(context, path, kind));
      } else if (dice < 50) {
        await this.#rename(path, this.#path(), prng.chance(0.7));
      } else if (dice < 67) await this.#ask("remove", (context) => remove(context, path, { kind: "either", recursive: false }));
      else if (dice < 72) await this.#removeTree(path);
      else if (dice < 77) await this.#collect();
      else if (dice < 92) await this.#ask("read", (context) => this.#read(context, path));
      else if (dice < 96) await this.#ask("list", (context) => this.#list(context));
      else await this.#meet();
    }
  }

  /** Two operations at once that stand in each other's way, on directories that were made for them if the names were free. */
  async #meet(): Promise<void> {
    const [one, other] = this.#prng.shuffle([...this.#options.names]) as [string, string];
    await this.#ask("create", (context) => create(context, [one], "directory"));
    const kind = this.#prng.below(3);
    if (kind === 0) {
      await this.#ask("create", (context) => create(context, [other], "directory"));
      await Promise.all([this.#rename([one], [other, one]), this.#rename([other], [one, other])]);
    } else if (kind === 1) {
      const removing = this.#ask("remove", (context) => remove(context, [one], { kind: "directory", recursive: false }));
      await Promise.all([this.#ask("create", (context) => create(context, [one, other], "file")), removing]);
    } else {
      const asked: Promise<unknown>[] = [this.#rename([one], [other])];
      for (let reads = 0; reads < 8; reads++) {
        await this.#sim.sleep(this.#prng.below(100));
        asked.push(this.#ask("read", (context) => this.#read(context, [one])));
      }
      await Promise.all(asked);
    }
  }

  #rename(from: readonly string[], to: readonly string[], replaces = true): Promise<unknown> {
    return this.#ask("rename", (context) => rename(context, from, to, { replaces }));
  }

  /** Reads all names of a directory. Throws BrokenPromise if there is no answer. */
  async readsAll(directory: string): Promise<readonly KnownNode[]> {
    const calledAt = this.#sim.nowMs;
    const held = new Map<string, KnownNode>();
    // A page ends where its range does.
    for (let after: string | undefined = ""; after !== undefined; ) {
      const page: StepAnswer = await this.#step({ kind: "page", directory, after, rowsMax: 100 });
      for (const { name, row } of page.rows ?? []) if (row.held) held.set(name, row.held);
      after = page.more ? page.rows?.at(-1)?.name : undefined;
    }
    const returnedAt = this.#sim.nowMs;
    for (const name of this.#options.names) {
      this.#judge.read({ directory, name, id: held.get(name)?.id, calledAt, returnedAt });
    }
    return [...held.values()].map(({ kind, id }) => ({ kind, id }));
  }

  async look(at: NodeAddress): Promise<TreeRow | undefined> {
    return (await this.#step({ kind: "look", at })).row;
  }

  /** True if the directory has rows. */
  async holds(directory: string): Promise<boolean> {
    return ((await this.#step({ kind: "page", directory, after: "", rowsMax: 1 })).rows?.length ?? 0) > 0;
  }

  #path(): string[] {
    return Array.from({ length: 1 + this.#prng.below(depthMax) }, () => this.#prng.pick(this.#options.names));
  }

  async #removeTree(path: readonly string[]): Promise<void> {
    const recursive = this.#options.removesTrees;
    await this.#ask("remove recursively", (context) => remove(context, path, { kind: "directory", recursive }));
  }

  /** Somebody tells the collector of any directory: it takes only what was removed. */
  async #collect(): Promise<void> {
    const directories = [...this.#judge.nodes.values()].filter(({ kind }) => kind === "directory");
    if (directories.length === 0) return;
    const { id } = this.#prng.pick(directories);
    await this.#at(this.#prng.pick(this.#options.doors), (role) => role.collectSome(this.#tree, id, 2));
    this.#options.count("collect");
  }

  *#read(context: MachineContext, path: readonly string[]): Machine<void> {
    const calledAt = this.#sim.nowMs;
    const links = yield* reach(context, path);
    const returnedAt = this.#sim.nowMs;
    for (const { at, held } of links) this.#judge.read({ ...at, id: held.id, calledAt, returnedAt });
    const last = links.at(-1)?.held;
    const missing = path[links.length];
    if (missing === undefined || last?.kind === "file") return;
    this.#judge.read({ directory: last?.id ?? rootId, name: missing, id: undefined, calledAt, returnedAt });
  }

  *#list(context: MachineContext): Machine<void> {
    const calledAt = this.#sim.nowMs;
    const told: string[] = [];
    const directories = new Map([["", rootId]]);
    let continuation: Uint8Array | undefined;
    for (let pages = 0; pages < pagesMax; pages++) {
      const pageCalledAt = this.#sim.nowMs;
      const page: ListPage = yield* list(context, [], { recursive: true, entriesMax: 1 + (pages % 4), continuation });
      const times = { calledAt: pageCalledAt, returnedAt: this.#sim.nowMs };
      for (const { path, held } of page.entries) {
        told.push(held.id);
        directories.set(path.join("/"), held.id);
        const directory = directories.get(path.slice(0, -1).join("/"));
        if (directory === undefined) throw new BrokenPromise(`a list tells of ${path.join("/")}, and not of what it is in`);
        this.#judge.read({ directory, name: held.name, id: held.id, ...times });
      }
      if (!page.continuation) {
        this.#judge.listed({ root: rootId, calledAt, returnedAt: this.#sim.nowMs, told });
        return;
      }
      continuation = page.continuation;
    }
  }

  async #ask<T>(
    what: string,
    make: (context: MachineContext) => Machine<T>,
    door = this.#prng.pick(this.#options.doors),
  ): Promise<Result<T> | undefined> {
    const timeoutMs = this.#prng.pick([1_000, 8_000]);
    const run = (role: TreeDoor) => role.run(this.#tree, (context) => this.#judge.recorded(make(context)), timeoutMs);
    const result = await this.#at(door, run, timeoutMs);
    this.#options.count(`${what} ${result === undefined ? "unanswered" : result.ok ? "done" : result.refusal}`);
    return result;
  }

  /** Has a door do something; undefined: no answer. */
  #at<T>(door: string, work: (role: TreeDoor) => Promise<T>, timeoutMs: number = readTimeoutMs): Promise<T | undefined> {
    const { clock } = this.#sim.world(this.#name);
    const asked = this.#sim.ask(this.#name, door, () => work(this.#sim.role(door) as TreeDoor));
    return within(clock, timeoutMs + answerMs, asked);
  }

  /** Takes one step after the faults. */
  async #step(step: Step): Promise<StepAnswer> {
    function* one(): Machine<StepAnswer | undefined> {
      return (yield [step])[0];
    }
    const door = this.#options.doors[0] as string;
    const answer = await this.#at(door, (role) => role.run(this.#tree, one, readTimeoutMs), readTimeoutMs);
    if (!answer?.ok || !answer.value) throw new BrokenPromise(`not answered after the last fault: ${step.kind}`);
    return answer.value;
  }
}

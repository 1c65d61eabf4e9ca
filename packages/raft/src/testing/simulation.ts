/**
 * One random run of a cluster: a network that loses, repeats and reorders, crashes that lose unsynced writes, pauses, cut links, snapshots,
 * members that come and go, and folders that are lost or put back, one member at a time. At the end the faults stop, and the cluster must serve.
 */
import { Prng, type Rules } from "@stamp/base";
import type { MemberId } from "../types.ts";
import { Broken } from "./checker.ts";
import { type Folder, newFolder } from "./disk.ts";
import { World } from "./world.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly rules: Rules;
  readonly voters: number;
  readonly steps: number;
  /** Folders are lost and put back. Without it every start is vouched for, as classic Raft assumes. */
  readonly forgets: boolean;
  readonly focus: Focus;
}

const names: readonly MemberId[] = ["a", "b", "c", "d", "e", "f", "g"];
const copiesMax = 4;
/** Actions and how often each is taken, in calm and, with the faults, in storms. */
const calmWeights = { deliver: 96, tick: 24, persist: 48, propose: 6, read: 4, lose: 3 };
const stormWeights = {
  ...calmWeights,
  ...{
    crash: 3,
    restart: 4,
    forget: 2,
    isolate: 2,
    heal: 2,
    pause: 1,
    resume: 1,
    compact: 1,
    transfer: 1,
    members: 2,
    copy: 2,
    campaign: 0,
  },
};
type Action = keyof typeof stormWeights;

/** Kinds of runs: weights that differ. */
const focuses = {
  mixed: {},
  leaders: { deliver: 60, crash: 10, restart: 14, lose: 16, forget: 0, members: 0, isolate: 0, campaign: 12 },
  members: { members: 12, lose: 8, isolate: 4, heal: 4 },
  reads: { read: 20, pause: 4, resume: 4, isolate: 4, heal: 2 },
  folders: { forget: 6, copy: 6, crash: 4, restart: 8 },
} as const satisfies Record<string, Partial<Record<Action, number>>>;
export type Focus = keyof typeof focuses;

const repeated = (weights: Partial<Record<Action, number>>): readonly Action[] =>
  Object.entries(weights).flatMap(([action, weight]) => Array<Action>(weight).fill(action as Action));

const only = (keys: object, weights: object): object => Object.fromEntries(Object.entries(weights).filter(([key]) => key in keys));

const messagesMax = 400;
const stormEvery = 500;
const stormSteps = 150;
/** Ticks in which a cluster without faults must serve: about twenty elections. */
const recoveryTicks = 400;

export class Simulation {
  readonly world: World;
  readonly #options: SimulationOptions;
  readonly #prng: Prng;
  readonly #calm: readonly Action[];
  readonly #storm: readonly Action[];
  readonly #copies = new Map<MemberId, Folder[]>();
  readonly #paused = new Set<MemberId>();
  /** Members that nothing reaches, and their term since. */
  readonly #isolated = new Map<MemberId, number>();
  /** Member that forgot something and has no standing yet: nobody else's folder is put back meanwhile. */
  #forgetful: MemberId | undefined;
  #proposals = 0;
  forgot = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#prng = new Prng(options.seed);
    this.world = new World({
      voters: names.slice(0, options.voters),
      seed: options.seed,
      rules: options.rules,
      ...(options.forgets ? {} : { trusted: true }),
      limits: { appendEntriesMax: 1 + (options.seed % 3), inFlightMax: 2, committedEntriesMax: 4 },
    });
    this.#calm = repeated({ ...calmWeights, ...only(calmWeights, focuses[options.focus]) });
    this.#storm = repeated({ ...stormWeights, ...focuses[options.focus] });
  }

  /** Throws `Broken` if a property is violated. */
  run(): void {
    for (let step = 0; step < this.#options.steps; step++) {
      // Storms are between longer times in which the cluster gets somewhere.
      const isStorm = step % stormEvery >= stormEvery - stormSteps;
      if (step % stormEvery === 0) this.#abate();
      this.#step(isStorm);
    }
    this.#recover();
  }

  get #up(): readonly MemberId[] {
    return [...this.world.members.keys()].filter((id) => !this.#paused.has(id));
  }

  #step(isStorm: boolean): void {
    const action = this.#prng.pick(isStorm ? this.#storm : this.#calm);
    if (action === "deliver") this.#deliver();
    else if (action === "lose") this.#lose();
    else if (action === "restart" || this.#up.length === 0) this.#restart();
    else if (action === "heal") this.#heal();
    else if (action === "resume") this.#paused.clear();
    else this.#act(action);
  }

  #act(action: Action): void {
    const { world } = this;
    const id = this.#target(action);
    if (action === "tick") this.#tick(id);
    else if (action === "persist") world.persist(id);
    else if (action === "propose") world.propose(id, `v${++this.#proposals}`);
    else if (action === "read") world.read(id);
    else if (action === "crash") world.crash(id, this.#prng.below(world.member(id).writing.length + 1));
    else if (action === "forget") this.#forget(id);
    else if (action === "isolate") this.#isolate(id);
    else if (action === "pause") this.#paused.add(id);
    else if (action === "compact") world.compact(id, this.#prng.below(3));
    else if (action === "transfer") this.#transfer(id);
    else if (action === "campaign") this.#campaign();
    else if (action === "members") this.#changeMembers(id);
    else this.#copy(id);
    this.#clearForgetful();
  }

  /** Faults often meet a leader; requests go to anybody who is up. */
  #target(action: Action): MemberId {
    const up = this.#up;
    const leaders = up.filter((id) => this.world.raft(id).status.role === "leader");
    const aims = !["tick", "persist", "copy", "forget"].includes(action);
    return this.#prng.pick(aims && leaders.length > 0 && this.#prng.chance(0.6) ? leaders : up);
  }

  /** Somebody runs for election without asking first, as when a leader hands over. Such leaders are short-lived. */
  #campaign(): void {
    const id = this.#prng.pick(this.#up);
    this.world.raft(id).campaign();
    this.world.collect(id);
  }

  #transfer(id: MemberId): void {
    this.world.raft(id).transferLeadership();
    this.world.collect(id);
  }

  #tick(id: MemberId): void {
    this.world.tick(id);
    const before = this.#isolated.get(id);
    const { term } = this.world.raft(id).status;
    if (before !== undefined && term !== before)
      throw new Broken(`Pre-vote: ${id} hears nobody, and its term rose from ${before} to ${term}`);
  }

  #deliver(): void {
    const { network } = this.world;
    for (let tries = 0; tries < 3 && network.length > 0; tries++) {
      const at = this.#prng.below(Math.min(network.length, 6));
      const message = network[at];
      if (message === undefined || this.#paused.has(message.to)) continue;
      if (!this.#prng.chance(0.03)) network.splice(at, 1);
      this.world.deliver(message);
      return;
    }
  }

  #lose(): void {
    const { network } = this.world;
    if (network.length > 0) network.splice(this.#prng.below(network.length), 1);
    if (network.length > messagesMax) network.splice(0, network.length - messagesMax);
  }

  #restart(): void {
    const down = [...this.world.down.keys()];
    if (down.length > 0) this.world.restart(this.#prng.pick(down));
  }

  #copy(id: MemberId): void {
    const copies = this.#copies.get(id) ?? [];
    this.#copies.set(id, [...copies, this.world.member(id).folder].slice(-copiesMax));
  }

  /** The member dies, and starts with an older folder or none. */
  #forget(id: MemberId): void {
    if (!this.#options.forgets || this.#options.voters === 1) return;
    if (this.#forgetful !== undefined && this.#forgetful !== id) return;
    const copies = this.#copies.get(id) ?? [];
    const folder = this.#prng.chance(0.3) || copies.length === 0 ? newFolder() : this.#prng.pick(copies);
    this.world.crash(id);
    this.world.restart(id, folder);
    this.#isolated.delete(id);
    this.#forgetful = id;
    this.forgot += 1;
  }

  #clearForgetful(): void {
    if (this.#forgetful !== undefined && this.world.members.get(this.#forgetful)?.raft.status.full) this.#forgetful = undefined;
  }

  #isolate(id: MemberId): void {
    const { world } = this;
    world.isolate(id, names);
    world.network = world.network.filter(({ from, to }) => from !== id && to !== id);
    const { voters } = world.raft(id).members;
    if (voters.length > 1 && world.member(id).writing.length === 0) this.#isolated.set(id, world.raft(id).status.term);
  }

  #heal(): void {
    this.world.cut.clear();
    this.#isolated.clear();
  }

  #changeMembers(id: MemberId): void {
    const { raft } = this.world.member(id);
    const kind = this.#prng.pick(["addLearner", "promote", "promote", "remove"] as const);
    // Several at once: all but the first are to be refused.
    for (let tries = 0; tries < 4; tries++) {
      const { voters, learners } = raft.members;
      if (kind === "remove" && voters.length <= 2) break;
      const member = this.#prng.pick(kind === "promote" && learners.length > 0 ? learners : names);
      if (!raft.changeMembers({ kind, member }).ok) continue;
      if (!this.world.members.has(member) && !this.world.down.has(member)) this.world.join(member);
    }
    this.world.collect(id);
  }

  #abate(): void {
    if (this.#prng.chance(0.8)) this.#heal();
    if (this.#prng.chance(0.8)) this.#paused.clear();
    while (this.world.down.size > 0 && this.#prng.chance(0.8)) this.#restart();
  }

  /** No more faults: the cluster elects a leader, and everybody who is a voter applies what is proposed now. */
  #recover(): void {
    const { world } = this;
    this.#paused.clear();
    this.#heal();
    for (const id of [...world.down.keys()]) world.restart(id);
    for (let tick = 0; tick < recoveryTicks; tick++) {
      world.run(1);
      this.#clearForgetful();
      const text = `end${tick}`;
      const { leader } = world;
      if (leader === undefined || !world.propose(leader.id, text)) continue;
      world.run(6);
      const voters = leader.raft.members.voters.filter((id) => world.members.has(id));
      if (voters.every((id) => world.member(id).state.includes(text) && world.raft(id).status.full)) return;
    }
    const states = [...world.members.values()].map(({ raft }) => JSON.stringify({ ...raft.status, members: raft.members }));
    throw new Broken(`Progress: no faults, and nothing is applied by everybody:\n${states.join("\n")}`);
  }
}

/** Returns what a run violated; undefined: nothing. An assertion of the code counts, too. */
export function violationOf(options: SimulationOptions): string | undefined {
  try {
    new Simulation(options).run();
    return undefined;
  } catch (error) {
    return error instanceof Error ? `${error.message}` : String(error);
  }
}

/** Returns the options of a seed: its size, and what it forgets. */
export const optionsOf = (seed: number, focus: Focus, rules: Rules): SimulationOptions => ({
  seed,
  rules,
  focus,
  voters: focus === "leaders" ? 5 - 2 * (seed % 2) : ([3, 5, 3, 2, 3, 5, 3, 1][seed % 8] ?? 3),
  steps: 3_000,
  forgets: focus === "folders" || (focus !== "leaders" && seed % 3 === 0),
});

export const allFocuses = Object.keys(focuses) as readonly Focus[];

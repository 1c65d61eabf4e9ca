/**
 * Handles of files, beyond what one decision sees (docs/design/files.md): the lock service says which sessions have ended, their handles are
 * closed, and a file that waits for its last handle is removed.
 *
 * Invariants (docs/design/model/handles.pml):
 * - a handle is closed for others only when the end of its session is recorded (rule `handlesEndRecorded`);
 * - a file that is marked for deletion is removed when its last handle is closed, not before (rule `handlesLastRemoves`).
 */
import { type Outcome, ok } from "@stamp/base";
import { lockServices } from "@stamp/metadata-store";
import type { EntryAddress } from "@stamp/objects";
import type { Client, World } from "@stamp/ports";
import { removeKnown } from "@stamp/tree";
import { type FileHandle, fromWire, type HandlesAnswer, type LeaseState, LockService } from "@stamp/wire";
import type { CallLimits, OperationKind, ResultKind, Router } from "../routing/router.ts";
import { Trees, whenSettled } from "./trees.ts";

/** Id of a file in a share. */
export interface FileName {
  readonly account: string;
  readonly container: string;
  readonly containerIncarnation: bigint;
  readonly blob: string;
}

export type HandleStepInit = Omit<Extract<OperationKind, { case: "handles" }>["value"], "name" | "$typeName">;

/** Answer of a step, or the code of the service for why there is none, e.g. that the file is gone. */
export type Stepped = { readonly answer: HandlesAnswer } | { readonly code: string };

type Lease = Pick<LeaseState, "leaseEpoch" | "ended">;
type Holder = Pick<FileHandle, "session" | "sessionEpoch">;

const everyEnd: Lease = { leaseEpoch: 2n ** 64n, ended: true };
/** An answer of the lock service about a session counts for so long, in milliseconds. */
const askedEveryMs = 100;
/** Sessions whose answers are remembered, and about which one request asks at once. */
const rememberedMax = 1_000;
const askedAtOnce = 16;
const sessionPrefix = "files/";
const lockServiceTimeoutMs = 1_000;
/** Times that one operation meets handles that were in the way and are not any more. */
const attemptsMax = 4;
const refusals: ReadonlySet<string> = new Set(["SharingViolation", "FileLockConflict", "DeletePending"]);
export const isHandleRefusal = (code: string): boolean => refusals.has(code);

/** Trees of the router's stamp, and the handles of their files. */
export function treesOf(
  world: World,
  router: Router,
  config: { readonly lockService: string; readonly requestTimeoutMs: number },
): { readonly trees: Trees; readonly handles: Handles } {
  const trees = new Trees(world, router, config);
  return { trees, handles: new Handles(world, router, trees, config) };
}

export class Handles {
  readonly #world: World;
  readonly #router: Router;
  readonly #trees: Trees;
  readonly #locks: Client<typeof LockService>;
  readonly figures = { opened: 0, closed: 0, sessionsEnded: 0, filesRemoved: 0, refused: {} as Record<string, number> };
  /** Answers of the lock service that still count, by session. */
  readonly #asked = new Map<string, { readonly atMs: number; readonly lease: Promise<Lease | undefined> }>();

  constructor(world: World, router: Router, trees: Trees, { lockService }: { readonly lockService: string }) {
    this.#world = world;
    this.#router = router;
    this.#trees = trees;
    this.#locks = lockServices(world, lockService, LockService);
  }

  async step(name: FileName, step: HandleStepInit, limits: CallLimits): Promise<Outcome<Stepped>> {
    const kind: OperationKind = { case: "handles", value: { ...step, name } };
    const outcome = await whenSettled(this.#trees, kind, limits, () => this.#router.execute(kind, limits));
    if (!outcome.ok) return outcome;
    const { case: found, value } = outcome.value;
    if (found === "handles") {
      this.#count(step.action ?? "", value.refused);
      return ok({ answer: value });
    }
    return ok({ code: found === "error" ? value.code : "InternalError" });
  }

  #count(action: string, refused = ""): void {
    const { figures } = this;
    if (refused !== "") figures.refused[refused] = (figures.refused[refused] ?? 0) + 1;
    else if (action === "open") figures.opened++;
    else if (action === "close" || action === "closeAll") figures.closed++;
    else if (action === "end") figures.sessionsEnded++;
  }

  /** Runs an operation on a file again when those who stood in its way are gone. */
  async beside(kind: OperationKind, limits: CallLimits, work: () => Promise<Outcome<ResultKind>>): Promise<Outcome<ResultKind>> {
    for (let attempt = 1; ; attempt++) {
      const outcome = await work();
      const code = outcome.ok && outcome.value.case === "error" ? outcome.value.value.code : "";
      if (!isHandleRefusal(code)) return outcome;
      this.#count("", code);
      if (attempt === attemptsMax || !("name" in kind.value) || !kind.value.name) return outcome;
      const { account = "", container = "", containerIncarnation = 0n, blob = "" } = kind.value.name;
      if (!(await this.settle({ account, container, containerIncarnation: BigInt(containerIncarnation), blob }, limits))) return outcome;
    }
  }

  /** Closes handles of ended sessions, and removes a file that waits for that only. True: something has changed. `at`: entry of the file, if known. */
  async settle(name: FileName, limits: CallLimits, at?: EntryAddress): Promise<boolean> {
    const listed = await this.step(name, { action: "list" }, limits);
    if (!listed.ok || "code" in listed.value) return false;
    let { answer } = listed.value;
    // Whoever was in the way has gone since.
    let changed = answer.handles.length === 0 && !answer.pending;
    for (const { session, sessionEpoch } of await this.#endedOf(answer.handles, limits)) {
      const ended = await this.step(name, { action: "end", session, sessionEpoch }, limits);
      if (!ended.ok || "code" in ended.value) return changed;
      answer = ended.value.answer;
      changed = true;
    }
    return (await this.removeDoomed(name, answer, limits, at)) || changed;
  }

  /** Removes the file if it is marked for deletion and nobody holds it. True: it is gone. */
  async removeDoomed(name: FileName, answer: HandlesAnswer, limits: CallLimits, at?: EntryAddress): Promise<boolean> {
    const { pending, handles, directoryId, entryName } = answer;
    const waits = handles.length > 0 && this.#world.rules.on("handlesLastRemoves");
    if (!pending || waits) return false;
    const tree = { account: name.account, filesystem: name.container, incarnation: fromWire(name.containerIncarnation) };
    const entry = at ?? { kind: "entry", directory: directoryId, name: entryName };
    const removed = await this.#trees.run(tree, (context) => removeKnown(context, entry, name.blob), limits);
    if (removed.ok && removed.value) this.figures.filesRemoved++;
    return removed.ok && removed.value;
  }

  /** Tells the handles of a renamed file its new entry, under which it goes with the last of them; at once if they are closed already. */
  async follow(name: FileName, at: EntryAddress, limits: CallLimits): Promise<void> {
    const told = await this.step(name, { action: "named", directoryId: at.directory, entryName: at.name }, limits);
    if (told.ok && "answer" in told.value) await this.removeDoomed(name, told.value.answer, limits, at);
  }

  /** True if the session holds its lease now: only then a handle of it is worth opening. Undefined: the lock service has not said. */
  async isLive(session: string, epoch: bigint): Promise<boolean | undefined> {
    const lease = await this.#lease(session);
    return lease && lease.leaseEpoch === epoch && !lease.ended;
  }

  /** Returns sessions of these handles that have ended, each with the last epoch of which the lock service has recorded that. */
  async #endedOf(handles: readonly Holder[], { deadlineMs }: CallLimits): Promise<readonly Holder[]> {
    const { clock, rules } = this.#world;
    const sessions = [...new Set(handles.map(({ session }) => session))];
    const ended: Holder[] = [];
    for (let from = 0; from < sessions.length && clock.monotonicMs() < deadlineMs; from += askedAtOnce) {
      const some = sessions.slice(from, from + askedAtOnce);
      const leases = await Promise.all(some.map((session) => (rules.on("handlesEndRecorded") ? this.#leaseLately(session) : everyEnd)));
      for (const [index, session] of some.entries()) {
        const gone = handles.filter((one) => one.session === session && hasEnded(leases[index], one.sessionEpoch));
        const [last] = gone.sort((one, other) => Number(other.sessionEpoch - one.sessionEpoch));
        if (last) ended.push(last);
      }
    }
    return ended;
  }

  /** Returns what the lock service says, or has said lately: clients that meet a session's handles must not keep the root of the stamp busy. */
  #leaseLately(session: string): Promise<Lease | undefined> {
    const nowMs = this.#world.clock.monotonicMs();
    const lately = this.#asked.get(session);
    if (lately !== undefined && nowMs - lately.atMs < askedEveryMs) return lately.lease;
    if (this.#asked.size >= rememberedMax) this.#asked.clear();
    const lease = this.#lease(session);
    this.#asked.set(session, { atMs: nowMs, lease });
    return lease;
  }

  async #lease(session: string): Promise<Lease | undefined> {
    const answer = await this.#locks.getLease({ name: `${sessionPrefix}${session}` }, { timeoutMs: lockServiceTimeoutMs });
    return answer.ok ? answer.value : undefined;
  }
}

/** False if the lock service has not said so. */
const hasEnded = (lease: Lease | undefined, epoch: bigint): boolean =>
  lease !== undefined && (lease.leaseEpoch > epoch || (lease.leaseEpoch === epoch && lease.ended));

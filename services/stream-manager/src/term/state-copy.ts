/**
 * A copy of what is recorded, kept by every stream manager that stands by: read once in pages, then what was written since, a quarter of a
 * second after the last reading or when something is written, whichever is later. Who becomes the leader reads only the last of it, however many extents there are.
 *
 * The copy is exact at the position that it names. Under a new term nothing is written by an older one any more, so a copy brought up to date
 * after the lease was taken is the truth until this leader writes itself; every transaction is conditional on the versions in it anyway.
 */
import type { Outcome, SmTerm } from "@stamp/base";
import { ok } from "@stamp/base";
import { heldQuestionMs, MetadataClient, type StoreAge, type StorePosition } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { jittered, sleep } from "@stamp/ports";
import { managerPrefix, StreamState } from "@stamp/stream";
import { notLeader } from "./ledger.ts";

const followEveryMs = 250;
/** While the store can't be asked. */
const retryMs = 1_000;
/** Extents whose lists are put together in one turn: this process renews a lease meanwhile. */
const extentsPerTurn = 10_000;
/** Listings of everything that were overtaken by changes. */
const listingsMax = 3;

interface Copy {
  readonly state: StreamState;
  readonly position: StorePosition;
}

export class StateCopy {
  readonly #world: World;
  readonly #metadata: MetadataClient;
  readonly #timeoutMs: number;
  readonly #age: Pick<StoreAge, "check" | "highest"> | undefined;
  readonly #lockService: string;
  #copy: Copy | undefined;
  #bringing: Promise<Outcome<Copy>> | undefined;
  /** Keys that were read: of everything, and of what changed. */
  #keysRead = 0;

  constructor(world: World, lockService: string, timeoutMs: number, age?: Pick<StoreAge, "check" | "highest">) {
    this.#world = world;
    this.#age = age;
    this.#lockService = lockService;
    this.#metadata = new MetadataClient(world, lockService);
    this.#timeoutMs = timeoutMs;
  }

  get keysRead(): number {
    return this.#keysRead;
  }

  /** Extents in the copy; undefined while there is none. */
  get extentCount(): number | undefined {
    return this.#copy?.state.extentCount;
  }

  /**
   * Keeps it up to date until `signal`. `questionMs`: how long the lock service may hold the question whether something was written, in ms; 0: the
   * copy asks what was written four times a second.
   */
  async follow(signal: AbortSignal, questionMs = 0): Promise<void> {
    const waitMs = heldQuestionMs(this.#lockService, questionMs);
    const { clock, logger, random } = this.#world;
    while (!signal.aborted) {
      const brought = await this.#upToDate();
      // The store may only be starting; what is damaged is told by who leads.
      if (!brought.ok) logger.debug("no copy of the metadata yet", { message: brought.failure.message });
      await sleep(clock, jittered(random, brought.ok ? followEveryMs : retryMs), signal);
      if (!brought.ok || waitMs === 0) continue;
      // Also without an answer: the copy then asks again, as it does without waits.
      await this.#metadata.news(managerPrefix, brought.value.position, { waitMs, timeoutMs: waitMs + this.#timeoutMs, signal });
    }
  }

  /** Returns everything that is recorded now, for a term that has not ended meanwhile. It is the caller's: the next copy begins anew. */
  async take(term: SmTerm, ended: AbortSignal): Promise<Outcome<StreamState>> {
    // A round that runs may have read its last page before the caller's term began.
    await this.#bringing;
    let brought = await this.#upToDate();
    // A leader that takes a stamp for new would raise its level, and have every replica deleted. So "nothing" is not believed at once.
    if (brought.ok && brought.value.state.isEmpty && term > 1) {
      this.#copy = undefined;
      brought = await this.#upToDate();
      if (brought.ok && !brought.value.state.isEmpty) this.#world.logger.error("the copy of the metadata was empty, the store is not");
    }
    if (!brought.ok) return brought;
    if (ended.aborted) return notLeader();
    this.#copy = undefined;
    return ok(brought.value.state);
  }

  #upToDate(): Promise<Outcome<Copy>> {
    this.#bringing ??= this.#bring().finally(() => {
      this.#bringing = undefined;
    });
    return this.#bringing;
  }

  async #bring(): Promise<Outcome<Copy>> {
    for (let listings = 0; ; listings++) {
      const copy: Outcome<Copy> = this.#copy === undefined ? await this.#list() : ok(this.#copy);
      if (!copy.ok) return copy;
      const brought = await this.#read(copy.value);
      if (brought.ok) this.#copy = brought.value;
      else {
        const { reason } = brought.failure;
        // While the store can't be asked the copy is only old.
        this.#copy = reason === "outOfRange" || reason === "damaged" ? undefined : copy.value;
        if (reason === "outOfRange" && listings < listingsMax) continue;
      }
      return brought;
    }
  }

  /** Pages of different moments: right with all that was written since the first. */
  async #list(): Promise<Outcome<Copy>> {
    const known = this.#age?.highest ?? 0;
    const position = await this.#metadata.position(this.#timeoutMs);
    if (!position.ok) return position;
    const checked = await this.#age?.check(position.value, known);
    if (checked?.ok === false) return checked;
    const state = new StreamState();
    for (let after = ""; ; ) {
      const page = await this.#metadata.page(managerPrefix, after, this.#timeoutMs);
      if (!page.ok) return page;
      const taken = this.#keep(state, page.value.entries);
      if (!taken.ok) return taken;
      if (!page.value.more) return ok({ state, position: position.value });
      after = page.value.entries.at(-1)?.key ?? after;
    }
  }

  async #read({ state, position }: Copy): Promise<Outcome<Copy>> {
    const known = this.#age?.highest ?? 0;
    const changes = await this.#metadata.changes(managerPrefix, position, this.#timeoutMs);
    if (!changes.ok) return changes;
    const checked = await this.#age?.check(changes.value.position, known);
    if (checked?.ok === false) return checked;
    const taken = this.#keep(state, changes.value.entries);
    if (!taken.ok) return taken;
    for (;;) {
      const complete = state.complete(extentsPerTurn);
      if (!complete.ok) return complete;
      if (complete.value) return ok({ state, position: changes.value.position });
      await sleep(this.#world.clock, 1);
    }
  }

  #keep(state: StreamState, entries: readonly { key: string; value: Uint8Array; version: number }[]): Outcome<void> {
    this.#keysRead += entries.length;
    return state.take(entries, (bytes) => this.#world.digest.crc32c(bytes));
  }
}

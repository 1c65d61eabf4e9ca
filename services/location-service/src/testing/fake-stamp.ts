/**
 * A stamp as the location service meets it: identity, leaders, disks, accounts and their roles. In memory; it forgets
 * nothing when its process crashes.
 */
import { equalBytes, type Failed, fromUtf8, neededLevels, type Outcome, ok, refused, utf8 } from "@stamp/base";
import {
  type AccountRole,
  answersFromMs,
  commandWaitMs,
  encodeRole,
  type GeoPoint,
  planObey,
  type RoleCommand,
  roleTermMs,
  roleWithoutRow,
  takesWrites,
} from "@stamp/geo";
import type { Handlers, Listener, Role, World } from "@stamp/ports";
import { served, sleep } from "@stamp/ports";
import {
  Accounts,
  FeatureLevels,
  fromWire,
  RoleCommand as Kind,
  LockService,
  MetadataStore,
  type ObeyRequest,
  StreamManager,
  toWire,
} from "@stamp/wire";

/** Part of `AccountShipping` that the location service acts by. */
export interface ShippingAt {
  readonly account: string;
  readonly epoch: bigint;
  readonly complete?: boolean;
  readonly pendingCommits?: bigint;
  readonly copyLineage?: bigint;
  readonly trouble?: string;
  readonly lastSyncMs?: bigint;
  readonly ranges?: readonly {
    readonly rangeId: string;
    readonly state: string;
    readonly pendingCommits?: bigint;
    readonly rates?: { readonly shippedCommits: number };
  }[];
  readonly nowMs?: bigint;
  readonly seedBytes?: bigint;
}

export interface StampState {
  stampId: string;
  usedBytes: number;
  /** True: its release knows no second stamps. */
  older: boolean;
  readonly totalBytes: number;
  /** Feature level of the stamp, and processes that have announced themselves. */
  level: number;
  readonly announced: Set<string>;
  /** Keys of each account. */
  readonly accounts: Map<string, readonly string[]>;
  /** How often each account was created anew. */
  readonly created: Map<string, number>;
  /** How often all accounts were asked for. */
  lists: number;
  /** Calls of the location service that ask for keys of accounts or give some, but for the creation of accounts. */
  readonly carried: string[];
  /** Where settings are not in force at a copy; empty: they are. */
  unconfirmed: string;
  /** Keys that the stamp's front-end puts in the place of those that it was given, while it says that it has these; undefined: it does not. */
  forgedKeys: readonly string[] | undefined;
  /** Number of times that the location service vouched for a copy whose primary is silent, by account. */
  readonly vouched: Map<string, number>;
  readonly roles: Map<string, AccountRole>;
  /** Numbers of the writes that each account has here, in order. */
  readonly logs: Map<string, number[]>;
  /** Answer to how far the account's copy is. */
  shipping: ((account: string) => ShippingAt) | undefined;
  /** Last Sync Time that the copies here were told, in milliseconds since 1970. */
  lastSyncMs: number | undefined;
  /** Queues that the stamp has of each account that is asked for. */
  queues: readonly string[];
  /** False: its release has no method that tells queues. */
  tellsQueues: boolean;
  removals: readonly { readonly account: string; readonly rows: bigint; readonly bytesLeft: bigint; readonly rangesLeft: number }[];
  /** Lineage of its metadata store; 0: it was never restored. */
  lineage: number;
  /** Lineages that promotions came with; undefined: with none. */
  readonly promotedUnder: (number | undefined)[];
  /** Hashes of settings that promotions came with, as text; empty: with none. */
  readonly promotedWith: string[];
  /** Accounts whose commands are refused, as when the range of their row is not served. */
  refusing: ReadonlySet<string>;
  /** Accounts whose commands have no answer before the caller's deadline. */
  stuck: ReadonlySet<string>;
  /** Every role that a command was obeyed with, in order. */
  readonly obeyed: { readonly account: string; readonly command: RoleCommand["kind"]; readonly operation: number }[];
}

export const stampState = (stampId: string, usedBytes: number, accounts: readonly string[] = []): StampState => ({
  stampId,
  usedBytes,
  older: false,
  totalBytes: 1_000,
  level: 1,
  announced: new Set(),
  accounts: new Map(accounts.map((name) => [name, [`key of ${name}`]])),
  created: new Map(),
  lists: 0,
  carried: [],
  unconfirmed: "",
  forgedKeys: undefined,
  vouched: new Map(),
  roles: new Map(),
  logs: new Map(),
  shipping: undefined,
  lastSyncMs: undefined,
  queues: [],
  tellsQueues: true,
  removals: [],
  lineage: 0,
  promotedUnder: [],
  promotedWith: [],
  refusing: new Set(),
  stuck: new Set(),
  obeyed: [],
});

export const roleAt = (state: StampState, account: string): AccountRole | undefined =>
  state.roles.get(account) ?? (state.accounts.has(account) ? roleWithoutRow : undefined);

export function logAt(state: StampState, account: string): number[] {
  const log = state.logs.get(account) ?? [];
  state.logs.set(account, log);
  return log;
}

/** Where a copy ends. */
const pointOf = (state: StampState, account: string): GeoPoint => [{ range: "r", sequence: logAt(state, account).length }];

/** A front-end of a stamp: it acts on a role for its term. */
export class FakeFrontEnd {
  readonly #state: StampState;
  readonly #nowMs: () => number;
  /** Roles that it acts on, by account. */
  readonly #roles = new Map<string, { readonly role: AccountRole | undefined; readonly untilMs: number }>();

  constructor(state: StampState, nowMs: () => number) {
    this.#state = state;
    this.#nowMs = nowMs;
  }

  /** True if the write is acknowledged. */
  write(account: string, number: number): boolean {
    const nowMs = this.#nowMs();
    let read = this.#roles.get(account);
    if (read === undefined || read.untilMs <= nowMs) {
      const role = roleAt(this.#state, account);
      read = { role, untilMs: nowMs + roleTermMs(role) };
      this.#roles.set(account, read);
    }
    const { role } = read;
    if (role === undefined || !takesWrites(role)) return false;
    logAt(this.#state, account).push(number);
    return true;
  }
}

const withRanges = ({ ranges = [], ...told }: ShippingAt) => ({ ...told, ranges: [...ranges] });

/** Longer than anybody waits for an answer, in milliseconds. */
const stuckMs = 600_000;

const unknownMethod = refused("unimplemented", "unknownMethod", "no such method");

export class FakeStamp implements Role {
  readonly #world: World;
  readonly #state: StampState;
  readonly address: string;
  readonly status = { ready: true, waitingFor: [], state: "serving", facts: {} };
  readonly #written = new Map<string, number>();
  #listener: Listener | undefined;

  constructor(world: World, address: string, state: StampState) {
    this.#world = world;
    this.address = address;
    this.#state = state;
  }

  async start(): Promise<void> {
    const { address } = this;
    const state = this.#state;
    const leases = { getLease: async ({ name }: { name: string }) => ok({ name, leaseEpoch: 1n, address, holder: address }) };
    const store = { getStamp: async () => ok({ stampId: state.stampId }) };
    const streams = {
      listNodes: async () =>
        ok({
          nodes: [
            { nodeId: "n1", up: true, freeBytes: toWire(state.totalBytes - state.usedBytes), totalBytes: toWire(state.totalBytes) },
            { nodeId: "n2", up: false, freeBytes: 0n, totalBytes: 7_000n },
          ],
        }),
    };
    const levels: Partial<Handlers<typeof FeatureLevels>> = {
      announce: async ({ role, name, versions }) => {
        state.announced.add(`${role} ${name} knows ${versions?.featureLevel}, uses ${versions?.levelInUse}`);
        return ok({ level: state.level });
      },
    };
    this.#listener = await this.#world.transport.serve(address, [
      served(LockService, leases as unknown as Handlers<typeof LockService>),
      served(MetadataStore, store as unknown as Handlers<typeof MetadataStore>),
      served(StreamManager, streams as unknown as Handlers<typeof StreamManager>),
      served(FeatureLevels, levels as Handlers<typeof FeatureLevels>),
      served(Accounts, this.#accounts() as Handlers<typeof Accounts>),
    ]);
  }

  #accounts(): Partial<Handlers<typeof Accounts>> {
    const state = this.#state;
    const known = (account: string) => {
      const keys = state.accounts.get(account);
      return keys === undefined ? refused("notFound", "conflict", `no account ${account}`) : ok({ name: account, keys: [...keys] });
    };
    const textOf = (account: string): string => {
      const role = state.roles.get(account);
      return role === undefined ? "" : encodeRole(role);
    };
    return {
      list: async ({ marker }) => {
        if (marker === "") state.lists++;
        // One account a page.
        const [first, second] = [...state.accounts.keys()].sort().filter((name) => name >= marker);
        return ok({ accounts: first === undefined ? [] : [{ name: first, geoRole: textOf(first) }], nextMarker: second ?? "" });
      },
      get: async ({ account }) => known(account),
      getForCopy: async ({ account }) => {
        state.carried.push(`keys of ${account} asked for`);
        return this.#mayCarry() ?? known(account);
      },
      getSettingsInForce: async ({ account }) => {
        const found = known(account);
        if (state.older) return unknownMethod;
        return found.ok ? ok({ inForce: state.unconfirmed === "", where: state.unconfirmed, tag: utf8(found.value.keys.join()) }) : found;
      },
      getRole: async ({ account }) => {
        if (state.older) return unknownMethod;
        const there = roleAt(state, account) !== undefined;
        return there ? ok({ geoRole: textOf(account) }) : refused("notFound", "conflict", `no account ${account}`);
      },
      getShipping: async ({ account }) =>
        state.older || state.shipping === undefined ? unknownMethod : ok(withRanges(state.shipping(account))),
      getCopy: async ({ account }) => {
        const { lastSyncMs } = state;
        const epoch = state.roles.get(account)?.epoch;
        if (state.older || epoch === undefined) return unknownMethod;
        return ok({ account, epoch: toWire(epoch), ...(lastSyncMs === undefined ? {} : { lastSyncMs: toWire(lastSyncMs) }) });
      },
      listQueues: async () => (state.older || !state.tellsQueues ? unknownMethod : ok({ names: [...state.queues] })),
      listRemovals: async () => ok({ removals: [...state.removals] }),
      listDiverged: async () => ok({ rows: [], nextMarker: "", complete: true, trouble: "" }),
      forgetDiverged: async () => ok({ rows: 0, nextMarker: "" }),
      vouchForCopy: async ({ account, tag }) => {
        if (tag.length > 0) {
          const has = equalBytes(tag, utf8((state.accounts.get(account) ?? []).join()));
          return has ? ok({ geoRole: textOf(account) }) : refused("failedPrecondition", "conflict", "the copy has other settings");
        }
        state.vouched.set(account, (state.vouched.get(account) ?? 0) + 1);
        return ok({ geoRole: textOf(account) });
      },
      copySettings: async ({ account, epoch, settings }) => {
        state.carried.push(`keys of ${account} given`);
        const refusal = this.#mayCarry();
        if (refusal !== undefined) return refusal;
        const role = state.roles.get(account);
        if (role === undefined || role.epoch !== fromWire(epoch) || role.role === "primary")
          return refused("failedPrecondition", "staleRoleEpoch", "not a copy of that");
        state.accounts.set(account, settings?.keys ?? []);
        return ok({ geoRole: textOf(account) });
      },
      create: async ({ account, keys }) => {
        const held = state.accounts.get(account);
        if (held !== undefined && (keys.length === 0 || held.join() !== keys.join()))
          return refused("alreadyExists", "conflict", `account ${account} is there already`);
        const made = keys.length > 0 ? [...keys] : [1, 2].map(() => `key ${this.#world.random.uint32()} of ${account}`);
        if (held === undefined) state.created.set(account, (state.created.get(account) ?? 0) + 1);
        state.accounts.set(account, made);
        return ok({ name: account, keys: made });
      },
      obey: async (request) => {
        if (state.stuck.has(request.account)) await sleep(this.#world.clock, stuckMs);
        return this.#obey(request);
      },
    };
  }

  /** Refuses what has keys of accounts from the level on at which primaries push them. */
  #mayCarry(): Failed | undefined {
    return this.#state.level >= neededLevels.pushedSettings
      ? refused("failedPrecondition", "newerFormat", "keys go from stamp to stamp")
      : undefined;
  }

  #obey(request: ObeyRequest): Outcome<{ geoRole: string; waitMs: number }> {
    if (this.#state.older) return unknownMethod;
    const { account, settings } = request;
    if (this.#state.refusing.has(account)) return refused("unavailable", "notReady", `the range of account ${account} is not served`);
    if (settings !== undefined) this.#state.carried.push(`keys of ${account} given`);
    const early = settings === undefined ? undefined : this.#mayCarry();
    if (early !== undefined) return early;
    const { clock, rules } = this.#world;
    const state = this.#state;
    const command = commandOf(request);
    if (command.kind === "follow" && settings === undefined && state.level < neededLevels.pushedSettings)
      return refused("invalidArgument", "badRequest", "a copy needs its keys");
    if (command.kind === "promote") state.promotedUnder.push(command.copyLineage);
    if (command.kind === "promote") state.promotedWith.push(fromUtf8(request.settingsTag));
    if (command.kind === "promote" && (command.copyLineage ?? state.lineage) < state.lineage)
      return refused("failedPrecondition", "staleLineage", "restored since");
    const obeyed = planObey(roleAt(state, account), command, { copied: pointOf(state, account), acknowledged: [] }, rules);
    if (!obeyed.ok) return obeyed;
    const { row, changed } = obeyed.value;
    if (changed) {
      state.obeyed.push({ account, command: command.kind, operation: command.operation });
      state.roles.set(account, row);
      if (command.kind === "remove") {
        state.accounts.delete(account);
        state.logs.delete(account);
      } else if (settings !== undefined) state.accounts.set(account, [...settings.keys]);
      else if (command.kind === "follow") state.accounts.set(account, []);
    }
    const key = `${account} ${row.obeyed.operation} ${row.obeyed.phase}`;
    const writtenMs = (changed ? undefined : this.#written.get(key)) ?? clock.monotonicMs();
    this.#written.set(key, writtenMs);
    const fromMs = answersFromMs(writtenMs, commandWaitMs(command), rules);
    return ok({ geoRole: encodeRole(row), waitMs: Math.max(0, Math.ceil(fromMs - clock.monotonicMs())) });
  }

  async stop(): Promise<void> {
    await this.#listener?.close(0);
  }
}

function commandOf({ command, copyLineage, operation: number, epoch, peer, point, dropQueues, withQueues }: ObeyRequest): RoleCommand {
  const operation = fromWire(number);
  const copied = withQueues ? { queues: true as const } : {};
  switch (command) {
    case Kind.FOLLOW:
      return { kind: "follow", operation, epoch: fromWire(epoch), peer, ...copied };
    case Kind.PAIR:
      return { kind: "pair", operation, peer, ...copied };
    case Kind.DRAIN:
      return { kind: "drain", operation };
    case Kind.UNDRAIN:
      return { kind: "undrain", operation };
    case Kind.PROMOTE:
      return { kind: "promote", operation, peer, ...(copyLineage !== undefined && { copyLineage: fromWire(copyLineage) }) };
    case Kind.DEMOTE:
      return {
        kind: "demote",
        operation,
        peer,
        point: point.map(({ range, sequence }) => ({ range, sequence: fromWire(sequence) })),
        ...copied,
      };
    case Kind.UNPAIR:
      return { kind: "unpair", operation };
    default:
      return { kind: "remove", operation, ...(dropQueues && { dropsQueues: true }) };
  }
}

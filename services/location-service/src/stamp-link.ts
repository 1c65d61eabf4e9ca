/**
 * Calls to one stamp: who it is, how full it is, its accounts. Every call names the leader of the stamp by the stamp's
 * own lock service.
 */
import type { Outcome } from "@stamp/base";
import { assert, emptyBytes, featureLevel, ok, refused, release } from "@stamp/base";
import { type AccountRole, type RoleCommand, roleOf, type StampRecord } from "@stamp/geo";
import { LeaderCalls, MetadataClient, processVersions } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import {
  type Account,
  type AccountRemoval,
  type AccountShipping,
  Accounts,
  type CopyReport,
  FeatureLevels,
  type ForgetDivergedResponse,
  fromWire,
  RoleCommand as Kind,
  type ListDivergedResponse,
  type SettingsInForce,
  StreamManager,
  toWire,
} from "@stamp/wire";

export interface Capacity {
  readonly usedBytes: number;
  readonly totalBytes: number;
}

export interface AccountAtStamp {
  readonly name: string;
  readonly role: AccountRole;
}

export interface RoleAnswer {
  readonly role: AccountRole;
  /** Time until the command counts as answered, in milliseconds; 0: it is. */
  readonly waitMs: number;
}

/** Location service, as it announces itself to a stamp's stream manager. */
export interface Announcer {
  readonly name: string;
  readonly incarnation: number;
}

export class StampLink {
  readonly #world: World;
  readonly #record: Pick<StampRecord, "name" | "lockService">;
  readonly #timeoutMs: number;
  readonly #metadata: MetadataClient;
  readonly #streamManager: LeaderCalls;
  readonly #partitionManager: LeaderCalls;
  /** Feature level of the stamp; 0: not heard yet. */
  #level = 0;

  /** `world`: world with a transport that proves the secret of the stamp. */
  constructor(world: World, record: Pick<StampRecord, "name" | "lockService">, timeoutMs: number) {
    const { lockService } = record;
    this.#world = world;
    this.#record = record;
    this.#timeoutMs = timeoutMs;
    this.#metadata = new MetadataClient(world, lockService);
    this.#streamManager = new LeaderCalls(world, { lockService, leaseName: "stream-manager" });
    this.#partitionManager = new LeaderCalls(world, { lockService, leaseName: "partition-manager" });
  }

  /**
   * Tells the stamp which levels this process knows, and hears the level of the stamp. A stamp of a release before feature levels, and one that
   * knows no role for a location service, hears nothing.
   */
  async announce({ name, incarnation }: Announcer): Promise<void> {
    const { transport } = this.#world;
    const request = { role: "location-service", name, incarnation: toWire(incarnation), release, versions: processVersions(this.#level) };
    const answer = await this.#streamManager.call(
      this.#timeoutMs,
      (address, timeoutMs) => transport.client(address, FeatureLevels).announce(request, { timeoutMs }),
      { idempotent: true, mayLackMethod: true },
    );
    if (answer.ok) this.#level = answer.value.level;
  }

  /** Last known feature level of the stamp; 0: not known. */
  get level(): number {
    return this.#level;
  }

  /** Refuses a stamp whose feature level is above that of this release: what it stores, this process would misread. */
  understood(): Outcome<void> {
    if (this.#level <= featureLevel) return ok();
    const message = `stamp ${this.#record.name} has feature level ${this.#level}, and this location service (release ${release}) knows ${featureLevel}: upgrade it`;
    return refused("unavailable", "newerFormat", message);
  }

  async stampId(): Promise<Outcome<string>> {
    return this.#named(await this.#metadata.stampId(this.#timeoutMs));
  }

  /** Returns the bytes of the extent nodes that are up. */
  async capacity(): Promise<Outcome<Capacity>> {
    const { transport } = this.#world;
    const listed = await this.#streamManager.call(
      this.#timeoutMs,
      (address, timeoutMs) => transport.client(address, StreamManager).listNodes({}, { timeoutMs }),
      { idempotent: true },
    );
    if (!listed.ok) return this.#named(listed);
    let [usedBytes, totalBytes] = [0, 0];
    for (const node of listed.value.nodes.filter(({ up }) => up)) {
      totalBytes += fromWire(node.totalBytes);
      usedBytes += Math.max(fromWire(node.totalBytes) - fromWire(node.freeBytes), 0);
    }
    return ok({ usedBytes, totalBytes });
  }

  /** Returns all accounts of the stamp with their roles. */
  async accounts(): Promise<Outcome<AccountAtStamp[]>> {
    const accounts: AccountAtStamp[] = [];
    for (let marker = ""; ; ) {
      const page = await this.#onAccounts((client, options) => client.list({ marker, maxResults: 1_000 }, options));
      if (!page.ok) return page;
      for (const { name, geoRole } of page.value.accounts) {
        const role = roleOf(geoRole);
        if (!role.ok) return this.#named(role);
        accounts.push({ name, role: role.value });
      }
      marker = page.value.nextMarker;
      if (marker === "") return ok(accounts);
    }
  }

  async hasAccount(account: string): Promise<Outcome<boolean>> {
    const role = await this.#onAccounts((client, options) => client.getRole({ account }, options), "tells no roles of accounts");
    const isOlder = !role.ok && role.failure.reason === "newerFormat";
    // A stamp of a release before roles.
    const found = isOlder ? await this.#onAccounts((client, options) => client.get({ account }, options)) : role;
    if (!found.ok) return found.failure.code === "notFound" ? ok(false) : found;
    if (!role.ok) return ok(true);
    const text = this.#named(roleOf(role.value.geoRole));
    return text.ok ? ok(text.value.role !== "removed") : text;
  }

  /**
   * Without keys the stamp makes two. Repeated with the same keys it changes nothing. Refused with alreadyExists if the account is there, and does
   * not have these keys.
   */
  createAccount(account: string, keys: readonly string[]): Promise<Outcome<Account>> {
    return this.#onAccounts((client, options) => client.create({ account, keys: [...keys] }, options));
  }

  /**
   * Sends a command about an account's role. Answers with the time until it counts as answered, in milliseconds; then the
   * same is to be sent again.
   */
  async obey(account: string, command: RoleCommand, settings?: Account): Promise<Outcome<RoleAnswer>> {
    const request = { account, ...requestOf(command), ...(settings === undefined ? {} : { settings }) };
    const obeyed = await this.#onAccounts((client, options) => client.obey(request, options));
    if (!obeyed.ok) return obeyed;
    const role = this.#named(roleOf(obeyed.value.geoRole));
    return role.ok ? ok({ role: role.value, waitMs: obeyed.value.waitMs }) : role;
  }

  async role(account: string): Promise<Outcome<AccountRole>> {
    const answer = await this.#onAccounts((client, options) => client.getRole({ account }, options));
    return answer.ok ? this.#named(roleOf(answer.value.geoRole)) : answer;
  }

  /** Asks every range of the primary for the progress of the account's copy. */
  shipping(account: string): Promise<Outcome<AccountShipping>> {
    return this.#onAccounts((client, options) => client.getShipping({ account }, options));
  }

  /** Returns the progress of the stamp's copy of the account, as its primary told. */
  copy(account: string): Promise<Outcome<CopyReport>> {
    return this.#onAccounts((client, options) => client.getCopy({ account }, options));
  }

  /** Returns a page of the stamp's report about a forced failover that deposed it. */
  diverged(account: string, marker: string): Promise<Outcome<ListDivergedResponse>> {
    return this.#onAccounts((client, options) => client.listDiverged({ account, marker }, options));
  }

  /** Deletes a page of a report of a deposed primary. */
  forgetDiverged(account: string, marker: string): Promise<Outcome<ForgetDivergedResponse>> {
    return this.#onAccounts((client, options) => client.forgetDiverged({ account, marker }, options));
  }

  /** Returns the accounts that were removed from the stamp and whose data it still deletes. */
  async removals(): Promise<Outcome<readonly AccountRemoval[]>> {
    const listed = await this.#onAccounts((client, options) => client.listRemovals({}, options), "does not tell removed accounts");
    return listed.ok ? ok(listed.value.removals) : listed;
  }

  /** Returns the names of the first queues that the stamp has of the account. */
  async queues(account: string): Promise<Outcome<readonly string[]>> {
    const listed = await this.#onAccounts(
      (client, options) => client.listQueues({ account }, options),
      "does not tell an account's queues",
    );
    return listed.ok ? ok(listed.value.names) : listed;
  }

  /** Returns the account with its keys and secrets, from a stamp below level `pushedSettings`. */
  accountForCopy(account: string): Promise<Outcome<Account>> {
    return this.#onAccounts((client, options) => client.getForCopy({ account }, options));
  }

  /** Asks whether the account's settings are in force at its copy, with a hash of them. */
  settingsInForce(account: string): Promise<Outcome<SettingsInForce>> {
    return this.#onAccounts(
      (client, options) => client.getSettingsInForce({ account }, options),
      "does not say whether a copy has the keys of its account",
    );
  }

  /**
   * Says that the account's primary has the settings of `tag`, or, without a tag, that it answers nobody. If the copy has these, or is asked for
   * none, it goes on serving.
   */
  vouchForCopy(account: string, epoch: number, tag: Uint8Array = emptyBytes): Promise<Outcome<unknown>> {
    return this.#onAccounts((client, options) => client.vouchForCopy({ account, epoch: toWire(epoch), tag }, options));
  }

  copySettings(account: string, epoch: number, settings: Account): Promise<Outcome<unknown>> {
    return this.#onAccounts((client, options) => client.copySettings({ account, epoch: toWire(epoch), settings }, options));
  }

  /**
   * `lacks`: what a release without the method does not do, for people. The first answer that the method is not known counts then; otherwise
   * the leader is looked for until the deadline, because a process of another role answers so, too.
   */
  async #onAccounts<T>(
    call: (client: ReturnType<typeof accountsAt>, options: { readonly timeoutMs: number }) => Promise<Outcome<T>>,
    lacks?: string,
  ): Promise<Outcome<T>> {
    const answer = await this.#partitionManager.call(
      this.#timeoutMs,
      (address, timeoutMs) => call(accountsAt(this.#world, address), { timeoutMs }),
      { idempotent: true, mayLackMethod: lacks !== undefined },
    );
    return this.#named(answer, lacks);
  }

  /** Adds the stamp's name to a failure. */
  #named<T>(outcome: Outcome<T>, lacks = "knows no second stamp of an account"): Outcome<T> {
    if (outcome.ok) return outcome;
    if (outcome.failure.reason === "unknownMethod") {
      const message = `stamp ${this.#record.name} runs a release that ${lacks}: upgrade it first`;
      return refused("failedPrecondition", "newerFormat", message);
    }
    return { ok: false, failure: { ...outcome.failure, message: `stamp ${this.#record.name}: ${outcome.failure.message}` } };
  }
}

const kinds: Readonly<Record<Exclude<RoleCommand["kind"], "create">, Kind>> = {
  follow: Kind.FOLLOW,
  pair: Kind.PAIR,
  drain: Kind.DRAIN,
  undrain: Kind.UNDRAIN,
  promote: Kind.PROMOTE,
  demote: Kind.DEMOTE,
  unpair: Kind.UNPAIR,
  remove: Kind.REMOVE,
};

function requestOf(command: RoleCommand) {
  assert(command.kind !== "create", "an account is created by a call of its own");
  const operation = toWire(command.operation);
  const other = "peer" in command ? { peer: command.peer, peerDoors: [...(command.peerDoors ?? [])] } : {};
  const epoch = command.kind === "follow" ? { epoch: toWire(command.epoch) } : {};
  const point =
    command.kind === "demote" ? { point: command.point.map(({ range, sequence }) => ({ range, sequence: toWire(sequence) })) } : {};
  const dropped = command.kind === "remove" && command.dropsQueues === true ? { dropQueues: true } : {};
  const copied = "queues" in command && command.queues === true ? { withQueues: true } : {};
  const lineage = command.kind === "promote" && command.copyLineage !== undefined ? { copyLineage: toWire(command.copyLineage) } : {};
  const tag = command.kind === "promote" && command.settingsTag !== undefined ? { settingsTag: command.settingsTag } : {};
  return { command: kinds[command.kind], operation, ...other, ...epoch, ...point, ...dropped, ...copied, ...lineage, ...tag };
}

const accountsAt = (world: World, address: string) => world.transport.client(address, Accounts);

/** Refuses a stamp that is another one than was added under this name. */
export function sameStamp(record: Pick<StampRecord, "name" | "stampId">, stampId: string): Outcome<void> {
  if (record.stampId === stampId) return ok();
  const message = `stamp ${record.name} is ${record.stampId}, and its address is that of stamp ${stampId}: nothing is asked of it`;
  return refused("failedPrecondition", "wrongStamp", message, { stampId });
}

/**
 * A stamp as the location service meets it: identity, leaders, disks, accounts. In memory; it forgets nothing when its
 * process crashes.
 */
import { ok, refused } from "@stamp/base";
import type { Handlers, Listener, Role, World } from "@stamp/ports";
import { served } from "@stamp/ports";
import { Accounts, LockService, MetadataStore, StreamManager, toWire } from "@stamp/wire";

export interface StampState {
  stampId: string;
  usedBytes: number;
  readonly totalBytes: number;
  /** Keys of each account. */
  readonly accounts: Map<string, readonly string[]>;
  /** How often each account was created anew. */
  readonly created: Map<string, number>;
}

export const stampState = (stampId: string, usedBytes: number, accounts: readonly string[] = []): StampState => ({
  stampId,
  usedBytes,
  totalBytes: 1_000,
  accounts: new Map(accounts.map((name) => [name, [`key of ${name}`]])),
  created: new Map(),
});

export class FakeStamp implements Role {
  readonly #world: World;
  readonly #state: StampState;
  readonly address: string;
  readonly status = { ready: true, waitingFor: [], state: "serving", facts: {} };
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
    const accounts: Handlers<typeof Accounts> = {
      list: async ({ marker }) => {
        // One account a page.
        const [first, second] = [...state.accounts.keys()].sort().filter((name) => name >= marker);
        return ok({ accounts: first === undefined ? [] : [{ name: first }], nextMarker: second ?? "" });
      },
      get: async ({ account }) => {
        const keys = state.accounts.get(account);
        return keys === undefined ? refused("notFound", "conflict", `no account ${account}`) : ok({ name: account, keys: [...keys] });
      },
      create: async ({ account, keys }) => {
        const held = state.accounts.get(account);
        if (held !== undefined && held.join() !== keys.join())
          return refused("alreadyExists", "conflict", `account ${account} is there already`);
        if (held === undefined) state.created.set(account, (state.created.get(account) ?? 0) + 1);
        state.accounts.set(account, [...keys]);
        return ok({ name: account, keys: [...keys] });
      },
    } as Partial<Handlers<typeof Accounts>> as Handlers<typeof Accounts>;
    this.#listener = await this.#world.transport.serve(address, [
      served(LockService, leases as unknown as Handlers<typeof LockService>),
      served(MetadataStore, store as unknown as Handlers<typeof MetadataStore>),
      served(StreamManager, streams as unknown as Handlers<typeof StreamManager>),
      served(Accounts, accounts),
    ]);
  }

  async stop(): Promise<void> {
    await this.#listener?.close(0);
  }
}

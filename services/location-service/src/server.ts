/** Calls of LocationService, turned into calls of the leading term. */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { AccountRecord, StampState } from "@stamp/geo";
import { stateOf } from "@stamp/geo";
import type { Clock, Handlers } from "@stamp/ports";
import { type LocationService, toWire, StampState as WireState } from "@stamp/wire";
import type { Location, StampView } from "./location.ts";

const pageMax = 1_000;

const wireStates: Readonly<Record<StampState, WireState>> = {
  open: WireState.OPEN,
  closed: WireState.CLOSED,
  draining: WireState.DRAINING,
};

/** `leading`: the term of this process; refused while another process leads, or none does. */
export function locationHandlers(clock: Clock, leading: () => Outcome<Location>): Handlers<typeof LocationService> {
  const onLocation = async <T>(work: (location: Location) => Promise<Outcome<T>> | Outcome<T>): Promise<Outcome<T>> => {
    const location = leading();
    return location.ok ? work(location.value) : location;
  };
  const viewed = (outcome: Outcome<StampView>) => (outcome.ok ? ok(wireStamp(outcome.value, clock.monotonicMs())) : outcome);
  return {
    addStamp: ({ name, location: place, lockService, secret }) =>
      onLocation(async (location) => viewed(await location.addStamp({ name, location: place, lockService, secret }))),
    setStampState: ({ name, state }) =>
      onLocation(async (location) => {
        const wanted = Object.entries(wireStates).find(([, wire]) => wire === state)?.[0];
        if (wanted === undefined) return refused("invalidArgument", "badRequest", "a state is open, closed or draining");
        return viewed(await location.setState(name, wanted as StampState));
      }),
    listStamps: () => onLocation((location) => ok({ stamps: location.stamps.map((view) => wireStamp(view, clock.monotonicMs())) })),
    createAccount: ({ account, location: place }) =>
      onLocation(async (location) => {
        const made = await location.createAccount(account, place);
        return made.ok ? ok({ account: wireAccount(location, made.value.account), keys: [...made.value.keys] }) : made;
      }),
    getAccount: ({ account }) =>
      onLocation((location) => {
        const found = location.account(account);
        return found.ok ? ok(wireAccount(location, found.value)) : found;
      }),
    listAccounts: ({ after, limit }) =>
      onLocation((location) => {
        const { accounts, more } = location.accounts(after, limit === 0 ? pageMax : Math.min(limit, pageMax));
        return ok({ accounts: accounts.map((account) => wireAccount(location, account)), more });
      }),
  };
}

function wireStamp({ record, answers, trouble, capacity, accounts, taken }: StampView, nowMs: number) {
  const { name, location, lockService, stampId, state } = record;
  return {
    name,
    location,
    lockService,
    stampId,
    state: wireStates[state],
    answers,
    trouble,
    usedBytes: toWire(capacity?.usedBytes ?? 0),
    totalBytes: toWire(capacity?.totalBytes ?? 0),
    toldMsAgo: toWire(capacity === undefined ? 0 : Math.floor(nowMs - capacity.reportedMs)),
    accounts,
    taken: [...taken],
  };
}

const wireAccount = (location: Location, account: AccountRecord) => ({
  name: account.name,
  stamp: account.primary,
  location: location.locationOf(account),
  state: stateOf(account),
  epoch: toWire(account.epoch),
});

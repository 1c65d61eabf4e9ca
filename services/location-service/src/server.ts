/** Calls of LocationService, turned into calls of the leading term. */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { AccountRecord, StampState } from "@stamp/geo";
import { operationState } from "@stamp/geo";
import type { Clock, Handlers } from "@stamp/ports";
import { type LocationService, toWire, StampState as WireState } from "@stamp/wire";
import type { Location } from "./location.ts";
import type { StampView } from "./stamps.ts";

const pageMax = 1_000;

const wireStates: Readonly<Record<StampState, WireState>> = {
  open: WireState.OPEN,
  closed: WireState.CLOSED,
  draining: WireState.DRAINING,
};

/** `leading`: returns the term of this process; refused while another process leads, or none does. */
export function locationHandlers(clock: Clock, leading: () => Outcome<Location>): Handlers<typeof LocationService> {
  const onLocation = async <T>(work: (location: Location) => Promise<Outcome<T>> | Outcome<T>): Promise<Outcome<T>> => {
    const location = leading();
    return location.ok ? work(location.value) : location;
  };
  const operated = (work: (location: Location) => Promise<Outcome<AccountRecord>>) =>
    onLocation(async (location) => {
      const begun = await work(location);
      return begun.ok ? ok(wireAccount(location, begun.value)) : begun;
    });
  const viewed = (location: Location, outcome: Outcome<StampView>) =>
    outcome.ok ? ok(wireStamp(location, outcome.value, clock.monotonicMs())) : outcome;
  return {
    addStamp: ({ name, location: place, lockService, secret, doors }) =>
      onLocation(async (location) => {
        const told = doors.length === 0 ? {} : { doors: [...doors] };
        return viewed(location, await location.stamps.add({ name, location: place, lockService, secret, ...told }));
      }),
    setStampState: ({ name, state }) =>
      onLocation(async (location) => {
        const wanted = Object.entries(wireStates).find(([, wire]) => wire === state)?.[0];
        if (wanted === undefined) return refused("invalidArgument", "badRequest", "a state is open, closed or draining");
        return viewed(location, await location.stamps.setState(name, wanted as StampState));
      }),
    declareStampLost: ({ name, acceptLoss }) =>
      onLocation(async (location) => {
        const declared = await location.lost.declare(name, acceptLoss);
        if (!declared.ok) return declared;
        const view = location.stamps.views.find(({ record }) => record.name === name);
        return view === undefined ? refused("notFound", "conflict", `there is no stamp ${name}`) : viewed(location, ok(view));
      }),
    listStamps: () =>
      onLocation((location) => ok({ stamps: location.stamps.views.map((view) => wireStamp(location, view, clock.monotonicMs())) })),
    createAccount: ({ account, location: place, secondLocation, withQueues }) =>
      onLocation(async (location) => {
        const made = await location.newAccounts.create(account, place, secondLocation, withQueues);
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
    protectAccount: ({ account, ...wanted }) => operated((location) => location.protect(account, wanted)),
    unprotectAccount: ({ account, dropQueues }) => operated((location) => location.unprotect(account, dropQueues)),
    failOverAccount: ({ account, ...how }) => operated((location) => location.failOver(account, how)),
    migrateAccount: ({ account, stamp, ...how }) => operated((location) => location.migrate(account, stamp, how)),
    proposeMoves: () =>
      onLocation(async (location) => {
        const { moves, staying } = await location.proposeMoves();
        return ok({ moves: moves.map((move) => ({ ...move, bytes: toWire(move.bytes) })), staying: [...staying] });
      }),
    listDiverged: ({ account, stamp, marker }) => onLocation((location) => location.diverged(account, stamp, marker)),
    forgetDiverged: ({ account, stamp, marker }) => onLocation((location) => location.forgetDiverged(account, stamp, marker)),
    giveUpOperation: ({ account }) => operated((location) => location.giveUp(account)),
  };
}

function wireStamp(located: Location, { record, answers, trouble, capacity, accounts, taken }: StampView, nowMs: number) {
  const { name, location, lockService, stampId, state, doors } = record;
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
    doors: [...(doors ?? [])],
    lost: record.lost === true,
    owed: located.lost.owedBy(name),
  };
}

function shippingFields(location: Location, account: AccountRecord) {
  const shipping = location.copies.of(account);
  return shipping === undefined ? {} : { shipping };
}

const wireAccount = (location: Location, account: AccountRecord) => ({
  name: account.name,
  stamp: account.primary,
  location: location.locationOf(account),
  state: operationState(account),
  epoch: toWire(account.epoch),
  secondary: account.secondary ?? "",
  seeded: account.seeded,
  operation: toWire(account.operation),
  kind: account.running?.kind ?? "",
  step: account.running?.step ?? "",
  target: account.running?.target ?? "",
  givenUp: account.running?.givenUp === true && account.running.drainsAgain !== true,
  trouble: location.troubleOf(account),
  ...(account.running?.acceptedSyncMs === undefined ? {} : { acceptedSyncMs: toWire(account.running.acceptedSyncMs) }),
  queues: location.copiesQueues(account),
  removals: location.stamps.removalsOf(account.name),
  ...shippingFields(location, account),
});

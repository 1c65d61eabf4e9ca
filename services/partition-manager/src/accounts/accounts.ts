/** Wire calls of the operator about accounts. Every change is made only if the row is still as it was read. */
import { decodeServiceProperties, isAccountName } from "@stamp/azure-rest";
import { featureLevel, type Outcome, ok, refused } from "@stamp/base";
import type { CallContext, Handlers, World } from "@stamp/ports";
import type { Account, Accounts } from "@stamp/wire";
import type { MapState } from "../map/map-state.ts";
import { copyWordHandlers } from "../roles/copy-word-handlers.ts";
import { endRemovalHere, queuesHere, RemovalsHere } from "../roles/removal-here.ts";
import { divergedHere, forgetHere } from "../roles/report-here.ts";
import { RoleCommands } from "../roles/role-commands.ts";
import { roleHandlers } from "../roles/role-handlers.ts";
import type { NamedRole } from "../roles/roles-here.ts";
import { locationMayCarry } from "../roles/settings-gate.ts";
import { fenceHere, shippingHere } from "../roles/shipping-here.ts";
import type { Term } from "../term/term.ts";
import { type AccountOperation, type AccountResult, AccountRows, hierarchicalProperties } from "./account-rows.ts";
import { accountOf, type ChangeAccount, changeAccount, isRemoved } from "./change-account.ts";
import { resealPage } from "./reseal.ts";
import {
  bare,
  blobSettingsHandlers,
  isKey,
  keyHandlers,
  newKey,
  sameKeys,
  scopeHandlers,
  withoutSecrets,
  wrongSetting,
} from "./settings-handlers.ts";

const listPageMax = 1_000;

/** `level`: feature level of the stamp; undefined: not known yet. */
export function accountsHandlers(
  world: World,
  leading: () => Outcome<Term>,
  level: () => number | undefined = () => featureLevel,
): Handlers<typeof Accounts> {
  const roles = new RoleCommands(world, {
    level,
    copied: (account, role) => onMap((map) => fenceHere(world, map, account, role)),
    endRemoval: (account, obeyed) => onMap((map) => endRemovalHere(world, map, account, obeyed)),
    queues: (account) => onMap((map) => queuesHere(world, map, account)),
    lineage: () => {
      const term = leading();
      return term.ok ? (term.value.map?.lineage ?? 0) : 0;
    },
  });
  const removals = new RemovalsHere(world);
  const rows = (): Outcome<AccountRows> => {
    const term = leading();
    if (!term.ok) return term;
    return term.value.map
      ? ok(new AccountRows(world, term.value.map))
      : refused("unavailable", "notReady", "the partition map is not open yet");
  };
  const onMap: OnMap = (work) => whileLeading(leading, work);
  const execute = async (operation: AccountOperation, context: CallContext): Promise<Outcome<AccountResult>> => {
    const opened = rows();
    return opened.ok ? opened.value.execute(operation, { deadlineMs: context.deadlineMs, signal: context.signal }) : opened;
  };
  const read = async (account: string, context: CallContext): Promise<Outcome<Account>> =>
    accountOf(account, await execute({ case: "getAccount", value: { account } }, context));

  const rolesHere = async (context: CallContext): Promise<Outcome<readonly NamedRole[]>> => {
    const [term, opened] = [leading(), rows()];
    if (!term.ok) return term;
    return opened.ok ? roles.list(term.value, () => rolesOf(opened.value, context)) : opened;
  };

  const change: ChangeAccount = (account, context, decide) => changeAccount({ read, execute }, account, context, decide);

  return {
    list: async ({ marker, maxResults }, context) => {
      const opened = rows();
      if (!opened.ok) return opened;
      const page = await opened.value.page(marker, maxResults < 1 ? listPageMax : Math.min(maxResults, listPageMax), context);
      if (!page.ok) return page;
      const here = page.value.accounts.filter(({ geoRole }) => !isRemoved(geoRole));
      return ok({ accounts: here.map((account) => ({ ...bare(account), keys: [] })), nextMarker: page.value.nextMarker });
    },
    reseal: async (request, context) => {
      const opened = rows();
      return opened.ok ? resealPage(opened.value, request, context) : opened;
    },
    get: async ({ account }, context) => withoutSecrets(await read(account, context)),
    getForCopy: async ({ account }, context) => {
      const mayCarry = locationMayCarry(world.rules, level());
      return mayCarry.ok ? read(account, context) : mayCarry;
    },
    ...roleHandlers(
      world,
      roles,
      execute,
      (account, role, copyLineage) =>
        onMap((map) => shippingHere(world, map, account, { ...role, copyLineage, drainedMsAgo: roles.drainedMsAgo(account, role) })),
      {
        list: (account, marker) => onMap((map) => divergedHere(world, map, account, marker)),
        forget: (account, marker) => onMap((map) => forgetHere(world, map, account, marker)),
      },
    ),
    ...copyWordHandlers(roles, read, execute),
    listRoles: async (_request, context) => {
      const listed = await rolesHere(context);
      return listed.ok ? ok({ roles: [...listed.value] }) : listed;
    },
    listRemovals: async (_request, context) => {
      const listed = await rolesHere(context);
      if (!listed.ok) return listed;
      const found = await onMap((map) => removals.list(map, listed.value));
      return found.ok ? ok({ removals: found.value }) : found;
    },
    listQueues: async ({ account }) => {
      const names = await onMap((map) => queuesHere(world, map, account));
      return names.ok ? ok({ names: names.value }) : names;
    },
    create: (request, context) => createAccount(world, execute, request, {}, context),
    createHierarchical: (request, context) => createAccount(world, execute, request, { blob: hierarchicalProperties }, context),
    ...keyHandlers(world, change),
    ...blobSettingsHandlers(change),
    ...scopeHandlers(world, change),
  };
}

async function createAccount(
  world: World,
  execute: (operation: AccountOperation, context: CallContext) => Promise<Outcome<AccountResult>>,
  { account, keys }: { readonly account: string; readonly keys: readonly string[] },
  serviceProperties: Record<string, string>,
  context: CallContext,
): Promise<Outcome<Account>> {
  if (!isAccountName(account)) return wrongSetting(`${account}: an account's name has 3 to 24 lower-case letters and digits`);
  if (keys.length > 2 || keys.some((key) => !isKey(key))) return wrongSetting("one or two keys, in base64");
  const made = keys.length > 0 ? [...keys] : [newKey(world), newKey(world)];
  const value = { account: { name: account, keys: made, serviceProperties }, onlyIfAbsent: true };
  const created = withoutSecrets(accountOf(account, await execute({ case: "putAccount", value }, context)));
  if (!created.ok) return created;
  const isSame = sameKeys(created.value.keys, made) && isTree(created.value.serviceProperties) === isTree(serviceProperties);
  return isSame ? created : refused("alreadyExists", "conflict", `account ${account} is there already`);
}

/** True if containers of the account are filesystems. */
const isTree = ({ blob = "" }: Record<string, string>): boolean => decodeServiceProperties(blob)?.hierarchicalNamespace === true;

type OnMap = <T>(work: (map: MapState) => Promise<Outcome<T>>) => Promise<Outcome<T>>;

/** Runs work on the partition map that counts only if this manager still leads at its end: another one may have changed the map. */
async function whileLeading<T>(leading: () => Outcome<Term>, work: (map: MapState) => Promise<Outcome<T>>): Promise<Outcome<T>> {
  const term = leading();
  if (!term.ok) return term;
  const { map } = term.value;
  if (map === undefined) return refused("unavailable", "notReady", "the partition map is not open yet");
  const done = await work(map);
  const still = leading();
  return still.ok && still.value === term.value ? done : refused("unavailable", "notLeader", "the term of this manager ended");
}

/** Returns the roles of all accounts, also of removed ones. */
async function rolesOf(rows: AccountRows, context: CallContext): Promise<Outcome<NamedRole[]>> {
  const roles: NamedRole[] = [];
  for (let marker = ""; ; ) {
    const page = await rows.page(marker, listPageMax, context);
    if (!page.ok) return page;
    for (const { name, geoRole } of page.value.accounts) if (geoRole !== "") roles.push({ account: name, geoRole });
    if (page.value.nextMarker === "") return ok(roles);
    marker = page.value.nextMarker;
  }
}

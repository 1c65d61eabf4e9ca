/** Wire calls about keys and settings of accounts that have a copy (docs/design/geo.md "Keys and settings"). */
import { type Outcome, ok, refused } from "@stamp/base";
import { roleOf, ships } from "@stamp/geo";
import type { CallContext, Handlers } from "@stamp/ports";
import { type Account, type Accounts, fromWire } from "@stamp/wire";
import type { AccountOperation, AccountResult } from "../accounts/account-rows.ts";
import type { RoleCommands } from "./role-commands.ts";

type WordHandlers = Pick<
  Handlers<typeof Accounts>,
  "getCopySettings" | "confirmCopy" | "vouchForCopy" | "getCopyTerm" | "getSettingsInForce"
>;

export function copyWordHandlers(
  roles: RoleCommands,
  read: (account: string, context: CallContext) => Promise<Outcome<Account>>,
  execute: (operation: AccountOperation, context: CallContext) => Promise<Outcome<AccountResult>>,
): WordHandlers {
  const { words } = roles;
  const at = (context: CallContext) => (operation: AccountOperation) => execute(operation, context);
  return {
    getCopySettings: async ({ account, confirmed, whole }, context) => {
      const held = await read(account, context);
      if (!held.ok) return held;
      const role = roleOf(held.value.geoRole);
      if (!role.ok) return role;
      if (!ships(role.value)) return ok({});
      const tag = words.tagOf(held.value);
      words.seen(account, tag, role.value, confirmed);
      return ok({ tag, ...(whole && { settings: held.value }) });
    },
    confirmCopy: async ({ account, epoch, paired, tag, settings, replaces }, context) => {
      if (tag.length === 0) return refused("invalidArgument", "badRequest", `word about account ${account} without a tag`);
      if (settings?.keys.length === 0) return refused("invalidArgument", "badRequest", `settings of account ${account} without its keys`);
      const word = { epoch: fromWire(epoch), paired: paired === 0n ? undefined : fromWire(paired), tag, settings, replaces };
      const other = await roles.confirm(account, word, at(context));
      if (!other.ok) return other;
      return ok(other.value === undefined ? {} : { settingsWanted: true, tag: other.value });
    },
    vouchForCopy: async ({ account, epoch, tag }, context) => {
      const vouched = await roles.vouch(account, fromWire(epoch), tag, at(context));
      return vouched.ok ? ok({ geoRole: vouched.value }) : vouched;
    },
    getCopyTerm: async ({ account }, context) => {
      const role = await roles.decodedRole(account, at(context));
      return role.ok ? ok({ servesForMs: words.servesForMs(account, role.value.epoch) }) : role;
    },
    getSettingsInForce: async ({ account }, context) => {
      const held = await read(account, context);
      if (!held.ok) return held;
      const role = roleOf(held.value.geoRole);
      if (!role.ok) return role;
      const tag = words.tagOf(held.value);
      return ok({ ...words.inForce(account, tag, role.value), tag });
    },
  };
}

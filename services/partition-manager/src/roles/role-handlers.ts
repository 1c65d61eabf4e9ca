/** Wire calls about the role of an account at this stamp. */
import { type Outcome, ok, refused } from "@stamp/base";
import { type RoleCommand as Command, encodeRole, type GeoPoint } from "@stamp/geo";
import type { CallContext, Handlers } from "@stamp/ports";
import { type Accounts, fromWire, type ObeyRequest, RoleCommand } from "@stamp/wire";
import type { AccountOperation, AccountResult } from "../accounts/account-rows.ts";
import type { Execute, RoleCommands } from "./role-commands.ts";

type RoleHandlers = Pick<Handlers<typeof Accounts>, "obey" | "getRole" | "copySettings" | "endSeeding" | "endReport">;

export function roleHandlers(
  roles: RoleCommands,
  execute: (operation: AccountOperation, context: CallContext) => Promise<Outcome<AccountResult>>,
): RoleHandlers {
  const at =
    (context: CallContext): Execute =>
    (operation) =>
      execute(operation, context);
  const text = (role: Awaited<ReturnType<RoleCommands["endSeeding"]>>) => (role.ok ? ok({ geoRole: encodeRole(role.value) }) : role);
  const named = (geoRole: Outcome<string>) => (geoRole.ok ? ok({ geoRole: geoRole.value }) : geoRole);
  return {
    obey: async (request, context) => {
      const command = commandOf(request);
      if (!command.ok) return command;
      const obeyed = await roles.obey(request.account, command.value, request.settings, at(context));
      return obeyed.ok ? ok({ geoRole: encodeRole(obeyed.value.role), waitMs: obeyed.value.waitMs }) : obeyed;
    },
    getRole: async ({ account }, context) => named(await roles.roleOf(account, at(context))),
    copySettings: async ({ account, epoch, settings }, context) =>
      settings === undefined || settings.keys.length === 0
        ? wrong(`settings of account ${account} without its keys`)
        : named(await roles.copySettings(account, fromWire(epoch), settings, at(context))),
    endSeeding: async ({ account, epoch }, context) => text(await roles.endSeeding(account, fromWire(epoch), at(context))),
    endReport: async ({ account, epoch }, context) => text(await roles.endReport(account, fromWire(epoch), at(context))),
  };
}

const wrong = (message: string) => refused("invalidArgument", "badRequest", message);

function commandOf(request: ObeyRequest): Outcome<Command> {
  const { account, peer, peerDoors, settings } = request;
  const operation = fromWire(request.operation);
  if (operation < 1) return wrong("operations of the location service are numbered from 1");
  const needsPeer = [RoleCommand.FOLLOW, RoleCommand.PAIR, RoleCommand.PROMOTE, RoleCommand.DEMOTE] as const;
  if ((needsPeer as readonly unknown[]).includes(request.command) && peer === "") return wrong("the command names no other stamp");
  const other = peerDoors.length === 0 ? { peer } : { peer, peerDoors: [...peerDoors] };
  switch (request.command) {
    case RoleCommand.FOLLOW:
      if (settings === undefined || settings.keys.length === 0) return wrong(`a copy of account ${account} needs its keys`);
      return ok({ kind: "follow", operation, epoch: fromWire(request.epoch), ...other });
    case RoleCommand.PAIR:
      return ok({ kind: "pair", operation, ...other });
    case RoleCommand.DRAIN:
      return ok({ kind: "drain", operation });
    case RoleCommand.UNDRAIN:
      return ok({ kind: "undrain", operation });
    case RoleCommand.PROMOTE:
      return ok({ kind: "promote", operation, ...other });
    case RoleCommand.DEMOTE:
      return ok({ kind: "demote", operation, point: pointOf(request), ...other });
    case RoleCommand.UNPAIR:
      return ok({ kind: "unpair", operation });
    case RoleCommand.REMOVE:
      return ok({ kind: "remove", operation });
    default:
      return wrong(`command ${request.command} is not known: the location service may run a newer release`);
  }
}

const pointOf = ({ point }: ObeyRequest): GeoPoint => point.map(({ range, sequence }) => ({ range, sequence: fromWire(sequence) }));

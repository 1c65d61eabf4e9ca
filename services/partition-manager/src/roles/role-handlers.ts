/** Wire calls about the role of an account at this stamp. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Outcome, ok, refused } from "@stamp/base";
import { type AccountRole, type RoleCommand as Command, encodeRole, type GeoPoint, notAhead, owesReport, ships } from "@stamp/geo";
import type { CallContext, Handlers, World } from "@stamp/ports";
import { type AccountShippingSchema, type Accounts, fromWire, type ObeyRequest, RoleCommand, toWire } from "@stamp/wire";
import type { AccountOperation, AccountResult } from "../accounts/account-rows.ts";
import { type DivergedHere, type ForgottenHere, reportTrouble } from "./report-here.ts";
import type { RoleCommands } from "./role-commands.ts";
import type { Execute } from "./role-rows.ts";
import type { ShippingHere } from "./shipping-here.ts";

type RoleHandlers = Pick<
  Handlers<typeof Accounts>,
  "obey" | "getRole" | "copySettings" | "noteCopy" | "getCopy" | "getShipping" | "endReport" | "listDiverged" | "forgetDiverged"
>;

export function roleHandlers(
  world: World,
  roles: RoleCommands,
  execute: (operation: AccountOperation, context: CallContext) => Promise<Outcome<AccountResult>>,
  shipping: (account: string, role: AccountRole, copyLineage?: number) => Promise<Outcome<ShippingHere>>,
  report: {
    readonly list: (account: string, marker: string) => Promise<Outcome<DivergedHere>>;
    readonly forget: (account: string, marker: string) => Promise<Outcome<ForgottenHere>>;
  },
): RoleHandlers {
  const at =
    (context: CallContext): Execute =>
    (operation) =>
      execute(operation, context);
  const text = (role: Awaited<ReturnType<RoleCommands["endReport"]>>) => (role.ok ? ok({ geoRole: encodeRole(role.value) }) : role);
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
    noteCopy: async ({ account, epoch, paired, complete, lastSyncMs, lineage, copyLineage }, context) => {
      const facts = {
        epoch: fromWire(epoch),
        paired: fromWire(paired),
        complete,
        lastSyncMs: lastSyncMs === undefined ? undefined : fromWire(lastSyncMs),
        lineage: fromWire(lineage),
        copyLineage: copyLineage === undefined ? undefined : fromWire(copyLineage),
      };
      const noted = text(await roles.noteCopy(account, facts, at(context)));
      return noted.ok ? ok({ ...noted.value, lineage: toWire(roles.lineage) }) : noted;
    },
    getCopy: async ({ account }) => {
      const copy = roles.copyOf(account);
      if (!copy.ok) return copy;
      const { epoch, paired, complete, lastSyncMs } = copy.value;
      const time = lastSyncMs === undefined ? {} : { lastSyncMs: toWire(lastSyncMs) };
      return ok({ account, epoch: toWire(epoch), paired: toWire(paired), complete, ...time });
    },
    getShipping: async ({ account, copyLineage }, context) => {
      const role = await roles.decodedRole(account, at(context));
      if (!role.ok) return role;
      const found = await shipping(account, role.value, fromWire(copyLineage));
      if (!ships(role.value)) {
        if (!found.ok) return found;
        const { progress, ranges, rangeCount } = found.value;
        return ok({
          account,
          ...(ranges.length < rangeCount ? {} : { seedBytes: toWire(progress.seedBytes), nowMs: toWire(world.clock.wallMs()) }),
        });
      }
      return found.ok
        ? ok(shippingToWire(account, role.value, found.value, world.clock.wallMs(), roles.words.confirmedMsAgo(account)))
        : found;
    },
    endReport: async ({ account, epoch }, context) => {
      const role = await roles.decodedRole(account, at(context));
      if (!role.ok) return role;
      if (role.value.epoch === fromWire(epoch) && owesReport(role.value)) {
        const trouble = await reportTrouble(await shipping(account, role.value));
        if (trouble !== "") return refused("unavailable", "notReady", trouble);
      }
      return text(await roles.endReport(account, fromWire(epoch), at(context)));
    },
    listDiverged: async ({ account, marker }, context) => {
      const role = await roles.decodedRole(account, at(context));
      if (!role.ok) return role;
      const owes = owesReport(role.value);
      const trouble = owes ? reportTrouble(await shipping(account, role.value)) : "";
      const page = await report.list(account, marker);
      return page.ok ? ok({ rows: [...page.value.rows], nextMarker: page.value.next, complete: !owes, trouble }) : page;
    },
    forgetDiverged: async ({ account, marker }, context) => {
      const role = await roles.decodedRole(account, at(context));
      if (!role.ok) return role;
      if (owesReport(role.value)) return refused("unavailable", "notReady", `the report about account ${account} is not complete yet`);
      const page = await report.forget(account, marker);
      return page.ok ? ok({ rows: page.value.rows, nextMarker: page.value.next }) : page;
    },
  };
}

function shippingToWire(
  account: string,
  { epoch, paired = 0 }: AccountRole,
  { progress, ranges }: ShippingHere,
  nowMs: number,
  confirmedMsAgo: number | undefined,
): MessageInitShape<typeof AccountShippingSchema> {
  const { pendingCommits, complete, trouble, rates } = progress;
  const lastSyncMs = notAhead(progress.lastSyncMs, nowMs);
  return {
    account,
    epoch: toWire(epoch),
    paired: toWire(paired),
    complete,
    trouble,
    nowMs: toWire(nowMs),
    pendingBytes: toWire(progress.pendingBytes),
    seededBytes: toWire(progress.seededBytes),
    seedBytes: toWire(progress.seedBytes),
    seedBytesPerSecond: toWire(progress.seedBytesPerSecond),
    ...(pendingCommits === undefined ? {} : { pendingCommits: toWire(pendingCommits) }),
    ...(lastSyncMs === undefined ? {} : { lastSyncMs: toWire(lastSyncMs) }),
    ...(rates === undefined ? {} : { rates }),
    ...(confirmedMsAgo === undefined ? {} : { settingsConfirmedMsAgo: toWire(confirmedMsAgo) }),
    lineage: sorted(ranges.map(({ lineage }) => lineage)).at(-1) ?? 0n,
    copyLineage: sorted(ranges.map(({ copyLineage }) => copyLineage))[0] ?? 0n,
    ranges: ranges.map((range) => ({
      ...range,
      ...(range.lastSyncMs !== undefined && range.lastSyncMs > nowMs && { lastSyncMs: toWire(nowMs) }),
    })),
  };
}

const sorted = (numbers: bigint[]): bigint[] => numbers.sort((a, b) => Number(a - b));

const wrong = (message: string) => refused("invalidArgument", "badRequest", message);

function commandOf(request: ObeyRequest): Outcome<Command> {
  const { account, copyLineage, peer, peerDoors, settings, settingsTag } = request;
  const operation = fromWire(request.operation);
  if (operation < 1) return wrong("operations of the location service are numbered from 1");
  const needsPeer = [RoleCommand.FOLLOW, RoleCommand.PAIR, RoleCommand.PROMOTE, RoleCommand.DEMOTE] as const;
  if ((needsPeer as readonly unknown[]).includes(request.command) && peer === "") return wrong("the command names no other stamp");
  const other = peerDoors.length === 0 ? { peer } : { peer, peerDoors: [...peerDoors] };
  const copied = request.withQueues ? { queues: true as const } : {};
  switch (request.command) {
    case RoleCommand.FOLLOW:
      if (settings?.keys.length === 0) return wrong(`settings of account ${account} without its keys`);
      return ok({ kind: "follow", operation, epoch: fromWire(request.epoch), ...other, ...copied });
    case RoleCommand.PAIR:
      return ok({ kind: "pair", operation, ...other, ...copied });
    case RoleCommand.DRAIN:
      return ok({ kind: "drain", operation });
    case RoleCommand.UNDRAIN:
      return ok({ kind: "undrain", operation });
    case RoleCommand.PROMOTE: {
      const lineage = copyLineage === undefined ? {} : { copyLineage: fromWire(copyLineage) };
      return ok({ kind: "promote", operation, ...other, ...lineage, ...(settingsTag.length > 0 && { settingsTag }) });
    }
    case RoleCommand.DEMOTE:
      return ok({ kind: "demote", operation, point: pointOf(request), ...other, ...copied });
    case RoleCommand.UNPAIR:
      return ok({ kind: "unpair", operation });
    case RoleCommand.REMOVE:
      return ok({ kind: "remove", operation, ...(request.dropQueues && { dropsQueues: true }) });
    default:
      return wrong(`command ${request.command} is not known: the location service may run a newer release`);
  }
}

const pointOf = ({ point }: ObeyRequest): GeoPoint => point.map(({ range, sequence }) => ({ range, sequence: fromWire(sequence) }));

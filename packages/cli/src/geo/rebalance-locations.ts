/**
 * `stamp location rebalance plan|run`: which accounts should move to another stamp of their location, and their moves, one after
 * another (docs/guides/locations.md).
 */
import type { ProposedMove, ProposedMoves } from "@stamp/wire";
import type { Command } from "commander";
import { call, onLocation, withLocation } from "../accounts/location-command.ts";
import { bytesText, table } from "../print.ts";
import { tell } from "../running.ts";
import { geoFacts } from "./geo-command.ts";
import { moveAccount } from "./migrate-command.ts";
import { locationAt } from "./operation.ts";

/** Sizes of many accounts are asked for. */
const planCall = { timeoutMs: 120_000 } as const;

export function addLocationRebalance(location: Command): void {
  const rebalance = location.command("rebalance").description("moves of accounts between the stamps of a location");
  const make = (name: string, about: string): Command =>
    withLocation(rebalance.command(name).description(about).option("--json", "for tools")).addHelpText(
      "after",
      `\nExample: stamp location rebalance ${name}`,
    );
  make("plan", "accounts that should leave a stamp which is too full or drains; nothing is changed").action(
    async (_options, command: Command) => {
      const plan = await planned(command);
      tell(command, planFacts(plan), () => planText(plan));
    },
  );
  make("run", "make the moves of the plan, one after another; what is under way goes on if this command is left").action(
    async (_options, command: Command) => {
      const plan = await planned(command);
      const moved = [];
      for (const { account, to } of plan.moves) moved.push(geoFacts(await moveAccount(command, account, to)));
      const after = await planned(command);
      tell(command, { moved, ...planFacts(after) }, () =>
        [`${plan.moves.length === 0 ? "nothing was to be moved" : `moved: ${plan.moves.map(moveText).join(", ")}`}`, planText(after)].join(
          "\n",
        ),
      );
    },
  );
}

const planned = (command: Command): Promise<ProposedMoves> =>
  onLocation(command, (transport, { at }) => locationAt(transport, at).proposeMoves({}, { ...call, ...planCall }));

const moveText = ({ account, to }: ProposedMove): string => `${account} to ${to}`;

const planFacts = ({ moves, staying }: ProposedMoves) => ({
  moves: moves.map(({ account, from, to, bytes }) => ({ account, from, to, bytes: Number(bytes) })),
  staying,
});

function planText({ moves, staying }: ProposedMoves): string {
  const rows = moves.map(({ account, from, to, bytes }) => [account, from, to, bytesText(Number(bytes))]);
  const shown = rows.length === 0 ? "no account is to be moved" : table(["ACCOUNT", "FROM", "TO", "ON DISKS"], rows);
  return [shown, ...staying.map((text) => `stays: ${text}`)].join("\n");
}

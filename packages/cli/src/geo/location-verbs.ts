/** All subcommands of `stamp location`. */
import type { Command } from "commander";
import { addLocation } from "../accounts/location-command.ts";
import { addLocationRebalance } from "./rebalance-locations.ts";

export function addLocationVerbs(program: Command): void {
  addLocationRebalance(addLocation(program));
}

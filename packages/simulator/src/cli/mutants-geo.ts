/** Mutants of workload `geo`: an account at two stamps. */
import type { Mutant } from "./mutant.ts";

export const geoMutants: readonly Mutant[] = [
  {
    rules: ["geoCommandsInOrder"],
    workload: "geo",
    focus: "geo-late-commands",
    why: "a late command of an operation that was given up wakes a drained primary, or stops one",
  },
  {
    rules: ["geoCachedRolesEnd"],
    workload: "geo",
    focus: "geo-failovers",
    why: "a front-end acknowledges writes after everything was shipped",
  },
  {
    rules: ["geoReportBeforeSeeding"],
    workload: "geo",
    focus: "geo-forced",
    why: "the rows of a deposed primary are replaced before they are reported",
  },
  {
    rules: ["geoReportLacksShipped"],
    workload: "geo",
    focus: "geo-forced",
    why: "the report of a deposed primary has what the new one has",
  },
  {
    rules: ["geoRowVersionsRise"],
    workload: "geo",
    focus: "geo-late-shipments",
    why: "a shipment that is late is applied over a later one",
  },
  {
    rules: ["geoCursorAcknowledged"],
    workload: "geo",
    focus: "geo-late-shipments",
    why: "what was sent counts as acknowledged, and is lost with its server",
  },
  {
    rules: ["geoHeirContinues"],
    workload: "geo",
    focus: "geo-late-shipments",
    why: "a new owner of a range begins at the end of the log, and what its predecessor had not shipped is left out",
  },
];

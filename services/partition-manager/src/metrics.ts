/** Declares how `/metrics` tells the facts of the leading partition manager. Its counters count since it leads. */
import { counter, gauge, type Metrics } from "@stamp/base";

const steps = "Steps of load balance that were carried out, by what was done.";
const causes = "The same steps by what made them necessary.";
const unserved = "Ranges that are not served: without a server, with one that does not answer, or while it loads them.";
const settled = "Splits and merges that were left half-way, and brought to an end afterwards.";

export const partitionManagerMetrics: Metrics = {
  pmTerm: gauge("partition_manager_term", "Its term as the leader."),
  mapVersion: gauge("partition_manager_map_version", "Version of the partition map."),
  "ranges.length": gauge("partition_manager_ranges", "Ranges of the partition map."),
  "unserved.unassigned": gauge("partition_manager_unserved_ranges", unserved, { why: "unassigned" }),
  "unserved.serverAway": gauge("partition_manager_unserved_ranges", unserved, { why: "server-away" }),
  "unserved.loading": gauge("partition_manager_unserved_ranges", unserved, { why: "loading" }),
  serversAway: gauge("partition_manager_servers_away", "Partition servers whose lease has ended, or that can't be called."),
  "ranges.*.ownerEpoch": gauge("partition_manager_range_owner_epoch", "Owner epoch of the range in the partition map.", { range: "*" }),
  "rebalanced.split": counter("partition_manager_rebalance_steps_total", steps, { step: "split" }),
  "rebalanced.merge": counter("partition_manager_rebalance_steps_total", steps, { step: "merge" }),
  "rebalanced.move": counter("partition_manager_rebalance_steps_total", steps, { step: "move" }),
  "rebalanced.byRequests": counter("partition_manager_rebalance_causes_total", causes, { cause: "requests" }),
  "rebalanced.byBytes": counter("partition_manager_rebalance_causes_total", causes, { cause: "bytes" }),
  "rebalanced.byProcessors": counter("partition_manager_rebalance_causes_total", causes, { cause: "processors" }),
  "rebalanced.byCold": counter("partition_manager_rebalance_causes_total", causes, { cause: "cold" }),
  "rebalanced.failed": counter("partition_manager_rebalance_failed_total", "Steps of load balance that were not possible."),
  "reshapes.splits": counter("partition_manager_splits_total", "Splits that were done, also those by hand."),
  "reshapes.merges": counter("partition_manager_merges_total", "Merges that were done, also those by hand."),
  "reshapes.notBegun": counter("partition_manager_reshapes_not_begun_total", "Splits and merges refused before anything had to wait."),
  "reshapes.settledForward": counter("partition_manager_reshapes_settled_total", settled, { direction: "forward" }),
  "reshapes.settledBack": counter("partition_manager_reshapes_settled_total", settled, { direction: "back" }),
  "assignments.assigned": counter("partition_manager_assigned_ranges_total", "Ranges that were given to a server."),
  "assignments.moved": counter("partition_manager_moved_ranges_total", "Ranges that were moved from one server to another."),
  "assignments.serversRefused": counter(
    "partition_manager_refused_servers_total",
    "Servers that were given up because they could not be called.",
  ),
};

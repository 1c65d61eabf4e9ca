/** How `/metrics` tells the facts of the leading stream manager. */
import { counter, gauge, histogram, type Metrics } from "@stamp/base";

export const streamManagerMetrics: Metrics = {
  term: gauge("stream_manager_term", "Its term as the leader."),
  streams: gauge("stream_manager_streams", "Streams there are."),
  "extents.*": gauge("stream_manager_extents", "Extents there are.", { state: "*" }),
  nodesUp: gauge("stream_manager_extent_nodes_up", "Extent nodes that report."),
  "nodesDown.length": gauge("stream_manager_extent_nodes_down", "Extent nodes that do not report and were not decommissioned."),
  underReplicated: gauge("stream_manager_under_replicated_extents", "Sealed extents with fewer copies than they should have."),
  "repair.waiting": gauge("stream_manager_repair_waiting_replicas", "Replicas that are being made again, or wait for that."),
  "repair.blocked": gauge("stream_manager_repair_blocked_replicas", "Of these, those that can't be made again now: no node has room."),
  "repair.inGrace": gauge("stream_manager_repair_grace_extents", "Sealed extents that miss a node which may come back."),
  "repair.endangered": gauge("stream_manager_endangered_replicas", "Replicas that wait, whose extent has one intact copy left."),
  "repair.unreachable": gauge("stream_manager_unreachable_extents", "Sealed extents of which no intact replica can be reached now."),
  sealedWithLoss: gauge("stream_manager_extents_sealed_with_loss", "Extents that a person sealed although acknowledged data may be lost."),
  sealsInProgress: gauge("stream_manager_seals_in_progress", "Extents that are being sealed."),
  seals: histogram("stream_manager_seal_duration_seconds", "Seals of extents until their length was recorded, since it leads."),
  allocations: histogram(
    "stream_manager_allocate_duration_seconds",
    "New extents until they were durable on every replica, since it leads; most are made ahead, and nobody waits for them.",
  ),
  replicasMadeAnew: counter("stream_manager_replicas_made_anew_total", "Replicas that were made again on other nodes, since it leads."),
  "coding.coded": gauge("stream_manager_coded_extents", "Extents that are stored as fragments."),
  "coding.attempts": gauge("stream_manager_coding_attempts", "Extents that are being coded, or get a fragment anew."),
  "coding.codedSinceItLeads": counter("stream_manager_extents_coded_total", "Extents that became fragments, since it leads."),
  "coding.fragmentsMadeAnew": counter("stream_manager_fragments_made_anew_total", "Fragments that were made again, since it leads."),
  "coding.fragmentsWaiting": gauge("stream_manager_fragments_waiting", "Coded extents with a fragment that has to be made again."),
  "coding.unreachable": gauge(
    "stream_manager_unreachable_coded_extents",
    "Coded extents whose lost fragments can't be computed from those reached now.",
  ),
  "coding.inGrace": gauge("stream_manager_coded_extents_in_grace", "Coded extents that miss a node which may come back."),
  "coding.strays": gauge("stream_manager_stray_fragments", "Fragments on nodes that no record explains."),
  "coding.blocked.length": gauge("stream_manager_coding_blocked", "Reasons why fragments can't be made again now."),
  "quarantined.length": gauge("stream_manager_nodes_with_quarantined_extents", "Extent nodes that hold extents which nobody knows."),
  allocatedAhead: gauge("stream_manager_extents_allocated_ahead", "Extents that were made before they are needed."),
  "waits.length": gauge("stream_manager_waits", "What waits for somebody; `stamp status` tells it in words."),
};

import type { FindingKind } from "./kind.ts";

export const rangeKinds = {
  "ranges-unknown": {
    severity: "warning",
    means: "The partition manager that leads did not answer in time, so nothing is known of ranges and servers.",
    help: "ask again: ./stamp health; if it stays so, see the logs partition-manager-*.log in DATA/logs",
  },
  "range-unassigned": {
    severity: "critical",
    stops: true,
    means: "A range has no server: its keys are not served.",
    help: "./stamp partition list; ./stamp status",
    alert: { expr: 'stamp_partition_manager_unserved_ranges{why="unassigned"} > 0', lasts: "10s" },
  },
  "range-loading": {
    severity: "warning",
    stops: true,
    means: "A server is loading a range: its keys are not served until it has. Seconds are usual after a move or a failure.",
    help: "./stamp partition list",
    alert: { expr: 'stamp_partition_manager_unserved_ranges{why="loading"} > 0', lasts: "30s" },
  },
  "range-server-away": {
    severity: "critical",
    stops: true,
    means:
      "The server of a range is down or does not answer: its keys are not served until its lease has ended (6 s) and another has them.",
    help: "wait for the lease to end; then ./stamp partition list",
    alert: { expr: 'stamp_partition_manager_unserved_ranges{why="server-away"} > 0', lasts: "10s" },
  },
  "range-changing": {
    severity: "note",
    means: "A range is being split or merged.",
    help: "./stamp partition list; ./stamp rebalance plan",
  },
  "range-lossy": {
    severity: "note",
    means:
      "A range was loaded over commits or checkpoints that a restore of the metadata did not bring back. It serves; rows that only these had are missing.",
    help: "which sequences: logs partition-server-*.log in DATA/logs; what nodes still have: ./stamp extent quarantine list",
  },
  "single-server": {
    severity: "note",
    means: "One partition server serves every range. If it fails, nothing is served until it is back.",
    help: "run two: ./stamp up --partition-servers 2",
  },
  "server-away": {
    severity: "warning",
    means: "The partition manager does not count on a partition server: it does not answer, or has no lease.",
    help: "read its log: ./stamp logs --role SUBJECT --data DATA",
    alert: { expr: "stamp_partition_manager_servers_away > 0", lasts: "1m", help: "which: ./stamp status; and why: ./stamp health" },
  },
  "copy-behind": {
    severity: "warning",
    means:
      "What clients wrote more than five minutes ago is not at the second stamp of an account yet, or nobody knows whether it is: a forced failover would lose it.",
    help: "how far, and why: ./stamp geo status; docs/guides/geo.md",
    alert: {
      expr: "stamp_partition_server_geo_lag_seconds > 300 or stamp_partition_server_geo_unsynced_ranges > 0",
      lasts: "10m",
    },
  },
  "copy-not-complete": {
    severity: "warning",
    means: "The copy of an account at its second stamp is still being filled: a failover to it is refused.",
    help: "percent, rate and time left: ./stamp geo status; geoSeedBytesPerSecond bounds the rate (docs/guides/geo.md)",
    alert: { expr: 'stamp_partition_server_geo_ranges{state="seeding"} > 0', lasts: "1h" },
  },
  "copy-refused": {
    severity: "warning",
    means: "The second stamp of an account does not answer, or refuses what is sent to it: another secret, another role, another release.",
    help: "what it says: ./stamp geo status; docs/guides/geo.md",
    alert: { expr: "stamp_partition_server_geo_failing_ranges > 0", lasts: "5m" },
  },
  throttled: {
    severity: "warning",
    means: "A partition server answers requests with 503 to protect others. Their SDKs try again.",
    help: "see whose: ./stamp rebalance plan; docs/guides/overload.md",
    alert: { expr: "stamp_partition_server_load_throttled_per_second > 0", lasts: "5m" },
  },
  "account-shed": {
    severity: "warning",
    means: "A process refuses requests of accounts that ask for much more than their share.",
    help: "docs/guides/overload.md",
    alert: {
      expr: "rate(stamp_front_end_admission_refused_total[5m]) > 0 or rate(stamp_partition_server_admission_refused_total[5m]) > 0",
      lasts: "5m",
    },
  },
  overloaded: {
    severity: "warning",
    means: "At a process, requests take so much longer than they did that it lets fewer in at a time.",
    help: "docs/guides/overload.md; more processes: ./stamp up --partition-servers N --front-ends N",
    alert: {
      expr: "stamp_front_end_admission_standing_queue == 1 and stamp_front_end_admission_waiting > 0 or stamp_partition_server_admission_standing_queue == 1 and stamp_partition_server_admission_waiting > 0",
      lasts: "5m",
    },
  },
  "requests-slow": {
    severity: "warning",
    means: "Of the reads or writes that a front-end answered in the last minute, one of a hundred took more than a second.",
    help: "see where the time goes: ./stamp status (Latency), docs/guides/figures.md",
    alert: {
      expr: 'histogram_quantile(0.99, sum by (service, class, le) (rate(stamp_front_end_request_duration_seconds_bucket{code="2xx",class=~"read|write"}[5m]))) > 1',
      lasts: "10m",
    },
  },
  "requests-fail": {
    severity: "warning",
    means: "A front-end answered requests of the last minute with 5xx.",
    help: "the reasons stand in its log: ./stamp logs --role SUBJECT --data DATA",
    alert: {
      expr: 'sum by (service) (rate(stamp_front_end_request_duration_seconds_count{code="5xx"}[5m])) / sum by (service) (rate(stamp_front_end_request_duration_seconds_count[5m])) > 0.01',
      lasts: "5m",
      help: "the reasons stand in the logs: ./stamp logs --role front-end --level warn --since 10m",
    },
  },
  "appends-fail": {
    severity: "warning",
    means: "Three or more appends failed at an extent node within the last minute. Each seals its extent, and is made again in another.",
    help: "./stamp node disks; the reasons stand in its log: ./stamp logs --role SUBJECT --data DATA",
    alert: {
      expr: 'sum by (name) (rate(stamp_extent_node_append_duration_seconds_count{outcome="failed"}[10m])) > 0.1',
      lasts: "10m",
    },
  },
  "map-old": {
    severity: "warning",
    means: "A front-end has not heard of the partition map for more than 30 s, and may ask servers that no longer serve a range.",
    help: "read its log: ./stamp logs --role SUBJECT --data DATA",
    alert: { expr: "stamp_front_end_map_age_seconds > 30", lasts: "1m" },
  },
} as const satisfies Readonly<Record<string, FindingKind>>;

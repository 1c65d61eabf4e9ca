import type { FindingKind } from "./kind.ts";

/**
 * Rule for what no process tells. A Prometheus that has just started knows nothing yet: it asks its targets one after another, over one
 * interval. When it has asked any of them twice it has asked each once, and what is missing then is missing. If all targets are gone, the
 * rule holds too. A rule of this kind lasts 30 s, for the time before the first answer.
 */
const missing = (expression: string): string =>
  `(${expression}) unless (max(count_over_time(up{job="stamp"}[5m])) < 2 and count(up{job="stamp"}) > 0)`;
const missingLasts = "30s";

const seeLog = "read its log: ./stamp logs --role SUBJECT --data DATA";

export const processKinds = {
  "supervisor-gone": {
    severity: "critical",
    means: "The supervisor was killed. Its processes serve on, but none of them is started again when it ends.",
    help: "replace it and its processes: ./stamp up -d --data DATA",
  },
  "supervisor-silent": {
    severity: "warning",
    means: "The supervisor is there and does not answer: it was paused, or has no processor. A process that ends is not started again.",
    help: "let it go on: kill -CONT SUBJECT; its log: ./stamp logs --role supervisor --data DATA",
  },
  "supervisor-cannot-write": {
    severity: "warning",
    means:
      "The supervisor can't write its notes into the data folder: the disk is full, can only be read, or fails. It goes on and tries again. If it is killed meanwhile, the next one does not know all of its processes.",
    help: "df -h DATA; df -i DATA; dmesg; its log: ./stamp logs --role supervisor --data DATA",
  },
  "lock-service-away": {
    severity: "critical",
    stops: true,
    means:
      "The lock service is down; or it is silent, and partition servers have lost their leases. Leases end within a term (6 s by default); then no range is served until it is back.",
    help: seeLog,
    alert: {
      expr: missing('absent(stamp_ready{role="lock-service"} == 1)'),
      lasts: missingLasts,
      help: "why: ./stamp health; its log: ./stamp logs --role lock-service --since 10m",
    },
  },
  "store-damaged": {
    severity: "critical",
    stops: true,
    means: "The metadata store is lost, damaged or older than what its stamp has seen, and is not used.",
    help: "put the newest copy on an extent node back: ./stamp metadata restore (docs/guides/metadata.md)",
    alert: { expr: 'stamp_state{role=~"lock-service|stream-manager|partition-manager",state="damaged"} == 1', lasts: "10s" },
  },
  "store-empty": {
    severity: "critical",
    stops: true,
    means:
      "The metadata store is empty: the disk of the lock service was lost or exchanged. What the extent nodes hold is unharmed, and is served again after a restore.",
    help: "put the newest copy on an extent node back: ./stamp metadata restore (docs/guides/metadata.md)",
    alert: { expr: 'stamp_state{role="lock-service",state="empty"} == 1', lasts: "10s" },
  },
  "store-of-another-stamp": {
    severity: "critical",
    stops: true,
    means:
      "The metadata store is that of another stamp than the extent nodes, which refuse it: it was made anew when its disk was lost, or disks were exchanged.",
    help: "put the newest copy on an extent node back: ./stamp metadata restore --replace (docs/guides/metadata.md)",
  },
  "role-absent": {
    severity: "critical",
    stops: true,
    means: "Every process of a role that serves requests is down or not ready: front-end or partition server.",
    help: "./stamp status; the logs are in DATA/logs",
    alert: {
      expr: missing('absent(stamp_ready{role="front-end"} == 1) or absent(stamp_ready{role="partition-server"} == 1)'),
      lasts: missingLasts,
    },
  },
  "process-down": {
    severity: "warning",
    means: "A process has ended. The supervisor starts it again unless a drill or a person holds it down.",
    help: seeLog,
    alert: { expr: 'up{job="stamp"} == 0', lasts: "1m" },
  },
  "process-silent": {
    severity: "warning",
    means:
      "A process did not answer in time. It was paused, hangs, can't be reached, or its machine or this one is busy: whether it serves is not known.",
    help: "ask again: ./stamp health --data DATA; if it stays silent, let it go on in case it was paused: kill -CONT PID",
  },
  "processes-silent": {
    severity: "warning",
    means:
      "At least half of the processes, and at least three, did not answer in time, twice. This machine has too much to do or can't reach them, more likely than all of them hang: whether they serve is not known.",
    help: "see whether this machine is busy: uptime; then ask again: ./stamp health --data DATA",
  },
  "host-away": {
    severity: "warning",
    means:
      "No process of a host of the topology answers: the host is down, can't be reached, or the stamp does not run there. What follows from that alone stands in its cause, and it is as severe as the worst of that.",
    help: "see whether the host runs; if the stamp does not: ./stamp up -d --data DATA; if it is gone for ever: docs/guides/deploy.md",
  },
  "secret-not-accepted": {
    severity: "warning",
    means:
      "`stamp health` found no secret of the stamp, or one that no process accepts, so that no process answers it. That says nothing about the stamp itself: its processes have their secret, and probably serve.",
    help:
      "if the file was deleted from the data folder, a running supervisor writes it again within seconds: repeat ./stamp health --data DATA; " +
      "else name the right file: --cluster-secret-file FILE (docs/guides/internal-ports.md)",
  },
  "secret-differs": {
    severity: "warning",
    means: "Some processes do not accept the secret that others accept: their files are of another stamp or another time.",
    help: "give them the files of the others, which they read by themselves (docs/guides/internal-ports.md)",
  },
  "process-not-ready": {
    severity: "warning",
    means: "A process answers and waits for something, for longer than a start takes.",
    help: seeLog,
    alert: { expr: "stamp_ready == 0", lasts: "2m" },
  },
  "process-starting": {
    severity: "note",
    means: "A process began less than 30 s ago and is not ready yet.",
    help: "wait, and ask again: ./stamp health",
  },
  "process-late": {
    severity: "note",
    means: "A process serves, and something that it does beside that is late.",
    help: seeLog,
  },
  "process-cannot-start": {
    severity: "critical",
    means: "A process ends again and again before it is ready, at least three times in a row. The supervisor goes on trying every 5 s.",
    help: seeLog,
  },
  "process-restarts": {
    severity: "warning",
    means: "A process was started again at least three times since the supervisor began, the last time within ten minutes.",
    help: seeLog,
    alert: { expr: "changes(process_start_time_seconds[10m]) >= 3", lasts: "0m" },
  },
  "release-mix": {
    severity: "warning",
    means: "Processes of several releases run. That is meant for the time of an upgrade only (docs/formats/versions.md).",
    help: "end the upgrade: ./stamp down --data DATA && ./stamp up -d --data DATA",
    alert: { expr: "count(count by (release) (stamp_build_info)) > 1", lasts: "1h" },
  },
  "process-too-old": {
    severity: "critical",
    means:
      "A process does not know the feature level of the stamp. It can refuse, or not see, what the others write; it must be of the release that " +
      "finalized, or a later one (docs/guides/upgrade.md).",
    help: "start it with the release of the others; which: ./stamp upgrade status --data DATA",
  },
  "upgrade-open": {
    severity: "note",
    means: "All processes know a higher feature level than the stamp has. Until it is finalized, the release before can be started again.",
    help: "when the new release has proven itself: ./stamp upgrade finalize --data DATA",
  },
  "clock-set": {
    severity: "warning",
    means:
      "The wall clock of a machine was set by more than a second while a process ran. Leases and order do not follow it; times shown do.",
    help: "see why: timedatectl status; chronyc tracking",
    alert: { expr: "max_over_time(stamp_wall_clock_set_seconds[1h]) - min_over_time(stamp_wall_clock_set_seconds[1h]) > 1", lasts: "0m" },
  },
  "clock-apart": {
    severity: "warning",
    means: "The wall clock of a process's machine differs from this one by more than 2 s. Last-Modified, SAS and tokens follow it.",
    help: "see which is right: timedatectl status; chronyc tracking",
    alert: { expr: "abs(stamp_wall_clock_seconds - timestamp(stamp_wall_clock_seconds)) > 2", lasts: "5m" },
  },
  "no-stream-manager": {
    severity: "critical",
    means: "No stream manager leads. Appends to open extents go on; no extent is made, sealed or repaired.",
    help: "a standby takes over within a term (6 s); after that: ./stamp status, and the logs stream-manager-*.log",
    alert: { expr: missing("absent(stamp_stream_manager_term)"), lasts: missingLasts },
  },
  "no-partition-manager": {
    severity: "critical",
    means: "No partition manager leads. What is served is served on; no range is assigned, moved, split or merged.",
    help: "a standby takes over within a term (6 s); after that: ./stamp status, and the logs partition-manager-*.log",
    alert: { expr: missing("absent(stamp_partition_manager_term)"), lasts: missingLasts },
  },
  "no-standby": {
    severity: "warning",
    means: "A manager leads and none is ready to take over: if it fails, nobody leads until one is started.",
    help: "run two of them: ./stamp up --stream-managers 2 --partition-managers 2",
    alert: { expr: 'count(stamp_ready{role=~"stream-manager|partition-manager"} == 1) by (role) < 2', lasts: "2m" },
  },
  "lease-ended": {
    severity: "warning",
    means: "The lease of a partition server ended: its ranges were given to others, and it serves nothing until it has a new one.",
    help: seeLog,
    alert: { expr: "stamp_partition_server_lease_epoch == 0", lasts: "30s" },
  },
  "lease-refused": {
    severity: "warning",
    means: "The partition manager gave a server up because it could not be called, although it holds its lease.",
    help: "see whether its port can be reached from the partition managers (docs/guides/internal-ports.md); its log: ./stamp logs --role SUBJECT",
  },
  "etcd-member-away": {
    severity: "warning",
    means:
      "A member of etcd does not answer the active lock service. The others serve while more than half of all do; no further one may be lost.",
    help: "start the member again: docs/guides/etcd.md",
  },
  "etcd-history-grows": {
    severity: "warning",
    means:
      "Nobody compacts the history of etcd: it keeps changes that are older than two hours, so it grows until it is full and takes nothing more.",
    help:
      "raise etcd's --auto-compaction-retention to 1h; if it is this stamp's alone: " +
      '{"roles":{"lock-service":{"etcdCompactEveryMs":300000}}} (docs/guides/etcd.md)',
  },
  "metadata-copy-behind": {
    severity: "warning",
    means:
      "One of the lock services that replicate the metadata has not caught up since its start, or does not follow the leader. The others serve; no " +
      "further one may be lost.",
    help: "wait: it catches up by itself; if it does not, its log says why: ./stamp logs --role SUBJECT",
    alert: { expr: "stamp_lock_service_log_standing == 0 or stamp_lock_service_log_lag_entries > 1000", lasts: "1m" },
  },
  "metadata-members-differ": {
    severity: "warning",
    means:
      "The lock services that vote on the metadata are not those of the configuration: one was removed and not added again, or the configuration was " +
      "changed first. Fewer of them may be lost than the configuration says.",
    help: "let it vote: ./stamp lock-service add SUBJECT; or, if it was removed for good, take it out of the configuration",
  },
  "metadata-copy-foreign": {
    severity: "critical",
    means:
      "Lock services that replicate the metadata hold those of two stamps, or of one stamp before and after a restore. They take nothing from one " +
      "another. A copy that differs from those of a majority is set aside by itself.",
    help: "if it stays: stop SUBJECT, move its folder away and start it; it takes the metadata from the others",
  },
  "metadata-keys-many": {
    severity: "warning",
    means: "The metadata store holds more than 80 % of the keys that it may (`keysMax`); beyond them no extent is made.",
    help: 'raise it: {"roles":{"lock-service":{"keysMax":…}}} in stamp.config.json (./stamp config show lock-service)',
    alert: { expr: "stamp_lock_service_keys / stamp_lock_service_keys_max > 0.8", lasts: "10m" },
  },
  "metadata-disk-full": {
    severity: "critical",
    stops: true,
    means: "The disk of the metadata store is full: leases are renewed and everything is read, but nothing new is recorded.",
    help: "make room on the disk of DATA/SUBJECT",
    alert: { expr: "stamp_lock_service_disk_full == 1", lasts: "1m" },
  },
  "metadata-slow": {
    severity: "warning",
    means: "One of a hundred synced writes of the metadata store takes more than 200 ms. Seals and renewals of leases wait for them.",
    help: "see what else uses that disk: iostat -x 1",
    alert: {
      expr: "histogram_quantile(0.99, sum by (name, le) (rate(stamp_lock_service_write_duration_seconds_bucket[5m]))) > 0.2",
      lasts: "10m",
    },
  },
} as const satisfies Readonly<Record<string, FindingKind>>;

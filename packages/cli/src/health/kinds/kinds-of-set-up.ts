import type { FindingKind } from "./kind.ts";

export const setUpKinds = {
  "public-key-reachable": {
    severity: "critical",
    means: "The account devstoreaccount1, whose key everybody knows, is served to other machines.",
    help: "give accounts of your own (`accounts` in stamp.config.json), or ./stamp up --http-bind 127.0.0.1",
  },
  "reachable-by-others": {
    severity: "note",
    means: "The REST doors are open to other machines: whoever has the key of an account, a SAS or a token is served.",
    help: "if no other machine shall connect: ./stamp up --http-bind 127.0.0.1",
  },
  "internal-ports-reachable": {
    severity: "note",
    means:
      "The internal ports are open to other machines: gRPC, where callers prove the secret of the stamp, and the health doors, which answer everybody.",
    help:
      "if one machine runs the whole stamp: ./stamp up --internal-bind 127.0.0.1; " +
      "else let a firewall pass the stamp's own machines only (docs/guides/internal-ports.md)",
  },
  "no-account": {
    severity: "note",
    means:
      "The configuration names only devstoreaccount1, which is refused when other machines can connect. Accounts that were made by hand are served.",
    help: "./stamp account list; ./stamp account create NAME",
  },
  "no-tls": {
    severity: "warning",
    means: "REST is served to other machines without TLS: whoever is on the way can read and change requests.",
    help: "./stamp certs init --host NAME; then ./stamp up --tls-cert … --tls-key …",
  },
  "certificate-ended": {
    severity: "critical",
    stops: true,
    means: "The certificate of the REST doors has ended: clients refuse it.",
    help: "make a new one, which is taken without a restart: ./stamp certs init",
    alert: { expr: "stamp_certificate_end_time_seconds <= time()", lasts: "0m" },
  },
  "certificate-ends": {
    severity: "warning",
    means: "The certificate of the REST doors ends within 30 days.",
    help: "make a new one, which is taken without a restart: ./stamp certs init",
    alert: {
      expr: "stamp_certificate_end_time_seconds > time() and stamp_certificate_end_time_seconds - time() < 30 * 86400",
      lasts: "1h",
    },
  },
  "certificate-unreadable": {
    severity: "critical",
    means: "The file of the certificate or its key can't be used. A front-end that is started now does not start.",
    help: "put it right: SUBJECT",
    alert: {
      expr: "stamp_certificate_unusable == 1",
      lasts: "1m",
      help: "put the files right that tlsCert and tlsKey name (./stamp config show); why: ./stamp logs --role SUBJECT --data DATA --level error",
    },
  },
  "cluster-certificate-ended": {
    severity: "critical",
    means: "A certificate with which processes prove who they are has ended: new connections of that process are refused.",
    help: "make new ones, which are taken without a restart: ./stamp certs cluster rotate",
    alert: { expr: "stamp_cluster_certificate_end_time_seconds <= time()", lasts: "0m" },
  },
  "cluster-certificate-ends": {
    severity: "warning",
    means: "A certificate with which processes prove who they are to each other ends within 30 days.",
    help: "make new ones, which are taken without a restart: ./stamp certs cluster rotate",
    alert: {
      expr: "stamp_cluster_certificate_end_time_seconds > time() and stamp_cluster_certificate_end_time_seconds - time() < 30 * 86400",
      lasts: "1h",
    },
  },
  "cluster-certificate-unusable": {
    severity: "warning",
    means:
      "The files of a certificate between processes can't be used. The process goes on with what it read before; one that is started now does not start.",
    help: "make what is missing: ./stamp certs cluster init; new ones for all: ./stamp certs cluster rotate",
    alert: { expr: "stamp_cluster_certificate_unusable == 1", lasts: "1m" },
  },
  "secret-unusable": {
    severity: "warning",
    means:
      "The file of the stamp's secret, or one beside it, can't be used. The process goes on with what it read before; one that is started now does not start.",
    help: "put the file right that the cause names; then it is taken within a second (docs/guides/internal-ports.md)",
    alert: {
      expr: "stamp_cluster_secret_unusable == 1",
      lasts: "1m",
      help: "why: ./stamp secret show; ./stamp logs --role SUBJECT --data DATA --level error",
    },
  },
  "secret-rotation-open": {
    severity: "note",
    means: "A rotation of the stamp's secret was begun and has not ended: the processes accept two secrets.",
    help: "end it: ./stamp secret rotate",
  },
  "secret-old": {
    severity: "note",
    means: "The secret that the processes prove to each other is older than a year.",
    help: "replace it without a stop: ./stamp secret rotate",
    alert: { expr: "time() - stamp_cluster_secret_made_time_seconds > 365 * 86400", lasts: "1h" },
  },
  "master-key-unusable": {
    severity: "warning",
    means:
      "The file of the master key, or one beside it, can't be used. The partition server goes on with what it read before; one that is started now does not start.",
    help: "put the file right that the cause names; then it is taken within a second (docs/guides/keys-at-rest.md)",
  },
  "master-keys-differ": {
    severity: "warning",
    means: "Partition servers seal secrets of accounts with different master keys, or one of them has none.",
    help: "see who has which: ./stamp keys show; end a rotation that was begun: ./stamp keys rotate-master, on each host",
  },
  "master-key-rotation-open": {
    severity: "note",
    means:
      "More than one master key opens secrets of accounts: a rotation was begun, or the key before is kept for older copies and backups.",
    help: "./stamp keys show; when nothing needs the key before: ./stamp keys rotate-master --forget-previous",
  },
  "master-key-old": {
    severity: "note",
    means: "The master key that seals secrets of accounts is older than a year.",
    help: "replace it without a stop: ./stamp keys rotate-master",
  },
  "fault-rules-on": {
    severity: "warning",
    means:
      "Fault rules make requests fail or wait on purpose (docs/guides/faults.md): applications meet errors that the stamp does not have.",
    help: "see them: ./stamp faults list; remove them: ./stamp faults remove --all",
  },
  "fault-rules-taken": {
    severity: "note",
    means: "The front-ends take fault rules from operators (docs/guides/faults.md). None acts now.",
    help: "where no application is under test: ./stamp up --fault-rules false",
  },
  "copies-not-possible": {
    severity: "warning",
    means: "`copies` is higher than the number of extent nodes: every extent gets one replica per node, and no more.",
    help: "start more nodes: ./stamp up --extent-nodes N; or ask for fewer copies: ./stamp up --copies N",
  },
  "domains-too-few": {
    severity: "warning",
    means: "There are fewer fault domains than copies: some replicas of an extent share one, and are lost with it.",
    help: "name more (`faultDomains`), or ask for fewer copies: ./stamp up --copies N",
  },
  "files-open": {
    severity: "warning",
    means: "Other users of this machine can read files of the stamp.",
    help: "chmod -R go= SUBJECT",
  },
} as const satisfies Readonly<Record<string, FindingKind>>;

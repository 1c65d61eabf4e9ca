/**
 * The slower parts of CI: the one table of what each guards and when it runs. `./stamp ci --help` prints it. Parts begin in this order, the
 * longest first (run-part.ts). Parts with `all` run in `./stamp ci --all` only, before an issue is resolved.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./commands.ts";
import { findProgram } from "./prometheus.ts";
import { type Part, run } from "./run-part.ts";

const node = process.execPath;
/** Runs files of tests, one after another. A test that names no time of its own has 10 minutes, or as many as `--minutes` says. */
const tests = [node, "tests/tools/test.ts", "--at-once", "1"];
const cli = "packages/cli/src/main.ts";
const minutes = 60_000;

export async function parts(): Promise<Part[]> {
  const engine = await dockerEngine();
  const promtool = await findProgram("promtool");
  if ("path" in promtool) process.env.PROMTOOL = promtool.path;
  return [
    {
      title: "types, lint, generated code",
      guards: "the floors of the packages, style, generated code, advisories",
      command: [node, "tests/tools/check.ts"],
      timeoutMs: 5 * minutes,
    },
    {
      title: "full disks of a real cluster",
      guards: "503 on a full disk, and writes that come back by themselves",
      command: [...tests, "--minutes", "15", "tests/drills/disk-full.slow.ts"],
      timeoutMs: 15 * minutes,
      missing: process.getuid?.() === 0 ? undefined : "mounting needs root",
    },
    {
      title: "two stamps by one command, tables, blobs and queues between them, one of them lost",
      guards: "copies between stamps, and failovers",
      // The tests of one pair of stamps are one file.
      command: [...tests, "--minutes", "20", "tests/location/pair.slow.ts"],
      timeoutMs: 20 * minutes,
    },
    {
      title:
        "internal ports without the secret or a certificate; keys at rest; formats of a later release; uploads slower than a collection",
      guards: "who may call what, sealed keys, formats of a later release",
      command: [
        ...tests,
        "tests/drills/internal-ports.slow.ts",
        "tests/drills/cluster-tls.slow.ts",
        "tests/drills/keys-at-rest.slow.ts",
        "tests/drills/master-key.slow.ts",
        "packages/embedded/src/newer-formats.slow.ts",
        "tests/drills/slow-upload.slow.ts",
      ],
      timeoutMs: 15 * minutes,
    },
    {
      title: "findings of a real cluster; its supervisor killed",
      guards: "every finding of health, and a stamp without its supervisor",
      command: [...tests, "packages/cli/src/health/health.slow.ts", "tests/drills/supervisor-killed.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "the real SDK against a real cluster",
      guards: "the API by the official SDK on a cluster: blobs, tables, queues, authorization, customer keys",
      command: [
        ...tests,
        "tests/conformance/sdk-cluster.slow.ts",
        "tests/conformance/authorization.slow.ts",
        "tests/conformance/customer-keys.slow.ts",
        "tests/conformance/queues/cluster.slow.ts",
        "tests/conformance/tables/cluster.slow.ts",
      ],
      timeoutMs: 12 * minutes,
    },
    {
      title: "damage by hand, fsck and repair; recovery of a large journal",
      guards: "bits and files lost on disk are found, told and mended",
      command: [
        ...tests,
        "tests/drills/damage.slow.ts",
        "tests/drills/lock-service-folders.slow.ts",
        "services/extent-node/src/recovery/recovery-large.slow.ts",
      ],
      timeoutMs: 20 * minutes,
    },
    {
      title: "the package from its tarball, in an empty folder, on the oldest Node",
      guards: "what npm installs: no path to the repository, the same bytes twice, the command line, a kill",
      command: [...tests, "tests/drills/package.slow.ts", "packages/cluster/src/release/release.slow.ts"],
      timeoutMs: 8 * minutes,
    },
    {
      title: "the console in a real browser",
      guards: "sign-in, every view, what is stored, cut connections, hostile names, accessibility",
      command: [
        ...tests,
        "tests/console/console.slow.ts",
        "tests/console/data.slow.ts",
        "tests/console/changes.slow.ts",
        "tests/console/accounts.slow.ts",
        "tests/console/nodes.slow.ts",
        "tests/console/ranges.slow.ts",
        "tests/console/topology.slow.ts",
        "tests/console/drills.slow.ts",
        "tests/console/geo.slow.ts",
      ],
      timeoutMs: 20 * minutes,
    },
    {
      title: "signals of a real cluster, and the examples",
      guards: "signals, and the examples as written",
      command: [...tests, "tests/coordination/signals.slow.ts", "tests/coordination/measure.slow.ts", "tests/examples/examples.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "the metadata store on a real etcd",
      guards: "the store over etcd, and lock services that follow one another on it",
      command: [...tests, "tests/etcd/adapter.slow.ts", "tests/etcd/lock-service.slow.ts"],
      timeoutMs: 15 * minutes,
    },
    {
      title: "recorded histories of SDK clients, and transactions, while processes are killed and stopped",
      guards: "linearizability and transactions by real processes under kills",
      command: [...tests, "tests/drills/histories.slow.ts", "tests/drills/transactions.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "rules for alerts, by promtool, and by Prometheus beside a cluster",
      guards: "each alert rule on made and on real figures",
      command: [
        ...tests,
        "packages/cli/src/health/alerts.test.ts",
        "packages/cli/src/health/alerts-at-start.test.ts",
        "tests/drills/prometheus.slow.ts",
      ],
      timeoutMs: 5 * minutes,
      missing: "missing" in promtool ? promtool.missing : undefined,
    },
    {
      title: "an upgrade process by process, the way back, and its end",
      guards: "old and new releases together, the way back, refusal after finalize",
      command: [...tests, "--minutes", "8", "packages/cli/src/upgrade/upgrade.slow.ts", "packages/cli/src/upgrade/released.slow.ts"],
      timeoutMs: 18 * minutes,
    },
    {
      title: "coded extents: two of seven nodes killed and emptied under clients, and the commands of stamp coding",
      guards: "coded data over two lost nodes, and the commands",
      command: [...tests, "tests/drills/coding.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "SDKs of other languages",
      guards: "clients of Python, Go and Java",
      command: [...tests, "tests/interop/interop.slow.ts"],
      timeoutMs: 15 * minutes,
    },
    {
      title: "lock services that replicate the metadata: each fault of one of them, under writing clients",
      guards: "that no acknowledged write is lost with one lock service: killed, its folder deleted, older, hurt by a bit",
      command: [...tests, "tests/drills/consensus.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "a front-end that stops: a transfer on every door",
      guards: "transfers that a stopping front-end still ends",
      command: [...tests, "tests/drills/drain.slow.ts"],
      timeoutMs: 3 * minutes,
    },
    {
      title: "the Helm chart, by Helm's engine and the types of the API",
      guards: "the chart",
      // Go builds Helm once.
      command: [...tests, "--minutes", "11", "tests/helm/chart.slow.ts"],
      timeoutMs: 11 * minutes,
    },
    {
      title: "simulation seeds",
      guards: "every promise of docs/faults.md, on eight histories of each workload",
      command: [node, "packages/simulator/src/main.ts", "--seeds", "8"],
      // At the lowest priority beside other parts.
      timeoutMs: 40 * minutes,
    },
    {
      title: "seeds that failed once",
      guards: "defects that seeds have found before, mended since",
      command: [...tests, "--minutes", "60", "packages/simulator/src/found-seeds.slow.ts"],
      timeoutMs: 60 * minutes,
      idle: true,
    },
    {
      title: "drills on the compose file",
      guards: "the image, its containers and volumes",
      command: [
        ...tests,
        "--minutes",
        "15",
        "tests/drills/compose.slow.ts",
        "tests/drills/one-container.slow.ts",
        "packages/testcontainers/src/stamp-container.slow.ts",
      ],
      alone: true,
      timeoutMs: 20 * minutes,
      missing: engine,
    },
    {
      title: "every command of the README and the guides, as written",
      guards: "that documents are true",
      command: [...tests, "--minutes", "12", "tests/drills/guides.slow.ts"],
      timeoutMs: 12 * minutes,
    },
    {
      title: "drills on a real cluster",
      guards: "kills, pauses, power loss, splits under clients, with the aims of time",
      command: [
        node,
        cli,
        "drill",
        "run",
        "kill-extent-node",
        "kill-partition-server",
        "kill-partition-server-of-many",
        "pause-partition-server",
        "power-loss",
        "split-and-merge",
        "rolling-restart",
      ],
      alone: true,
      timeoutMs: 10 * minutes,
      // Writes were held up for longer than the aim, and every promise was kept: a busy machine. The conclusions say so.
      passesWith: 8,
    },
    {
      title: "turns of the event loop under the largest requests",
      guards: "that no request blocks others",
      // Each input is asked again when it is above the bound: a busy machine makes this part longer, and does not fail it.
      command: [node, "packages/bench/src/main.ts", "turns", "--scale", "0.02", "--tries", "1", "--tries-max", "6"],
      alone: true,
      timeoutMs: 10 * minutes,
    },
    {
      title: "processor time of each operation against its budget",
      guards: "processor time of an operation",
      // A scenario that is above its budget is asked again, up to six times; under a high load nothing is judged.
      command: [node, "packages/bench/src/main.ts", "--budget"],
      alone: true,
      timeoutMs: 10 * minutes,
    },
    {
      title: "sixty simulation seeds of each workload",
      guards: "the same promises on longer luck",
      all: true,
      command: [node, "packages/simulator/src/main.ts", "--seeds", "60"],
      timeoutMs: 60 * minutes,
      idle: true,
    },
    {
      title: "seeds must fail with a rule off",
      guards: "that the simulator sees every rule that is switched off",
      all: true,
      // A seed at the lowest priority may wait long for a processor.
      command: [node, "packages/simulator/src/main.ts", "--mutations", "--budget", "400", "--seed-timeout-s", "1800"],
      timeoutMs: 60 * minutes,
      idle: true,
    },
    {
      title: "thirty faults of lock services that replicate the metadata",
      guards: "the same on longer luck: each kind at each lock service",
      all: true,
      command: [...tests, "--minutes", "25", "tests/drills/consensus-long.slow.ts"],
      timeoutMs: 25 * minutes,
    },
    {
      title: "members of an etcd: taken over, replaced, slow",
      guards: "the way to an etcd and back, a member lost, a slow disk",
      all: true,
      command: [...tests, "tests/etcd/migrate.slow.ts", "tests/etcd/members.slow.ts", "tests/etcd/slow-disk.slow.ts"],
      timeoutMs: 15 * minutes,
    },
    {
      title: "three hosts that lose one another; a dead host is replaced; clocks are set by an hour",
      guards: "cuts between hosts, a host replaced, wrong clocks",
      all: true,
      command: [...tests, "--minutes", "6", "tests/hosts/hosts.slow.ts", "tests/hosts/replace.slow.ts", "tests/hosts/clocks.slow.ts"],
      timeoutMs: 13 * minutes,
    },
    {
      title: "a node with fragments is slow: reads of coded blobs",
      guards: "reads of coded blobs beside a slow node",
      all: true,
      command: [node, cli, "drill", "run", "slow-fragment"],
      alone: true,
      timeoutMs: 4 * minutes,
      passesWith: 8,
    },
    {
      title: "memory of every process under a large upload",
      guards: "bounds of memory of every process",
      all: true,
      command: [...tests, "tests/drills/upload-memory.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "a large upload over an extent node's and a front-end's death",
      guards: "an upload of 1 GiB over two deaths",
      all: true,
      command: [...tests, "tests/drills/big-upload.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "an upgrade host by host, the way back, and its end",
      guards: "the same on three hosts",
      all: true,
      command: [...tests, "--minutes", "8", "tests/hosts/upgrade.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "the location service beside a real stamp: its processes killed, stamps removed, releases mixed",
      guards: "what moves accounts while parts of it die",
      all: true,
      command: [
        ...[...tests, "--minutes", "20"],
        ...["tests/location/processes.slow.ts", "tests/location/removal.slow.ts", "tests/location/releases.slow.ts"],
      ],
      timeoutMs: 28 * minutes,
    },
    {
      title: "tools of other projects: backup, restore, compare",
      guards: "restic, pgBackRest, DVC and seven more",
      all: true,
      // Where a registry is away, its tools are skipped.
      command: [...tests, "--minutes", "15", "tests/interop/tools.slow.ts"],
      timeoutMs: 15 * minutes,
    },
    {
      title: "tools of other projects at the Files service",
      guards: "rclone's azurefiles and azure-cli",
      all: true,
      // Where a registry is away, its tool is skipped.
      command: [...tests, "--minutes", "30", "tests/interop/files.slow.ts"],
      timeoutMs: 40 * minutes,
    },
    {
      title: "suites of other projects, with a stamp in place of the emulator",
      guards: "startStamp for users of the emulator: adlfs and universal-pathlib",
      all: true,
      // Where the registry is away, they are skipped.
      command: [...tests, "--minutes", "15", "tests/interop/suites.slow.ts"],
      timeoutMs: 25 * minutes,
    },
    {
      title: "processes killed at any step of renames and removals of directories",
      guards: "a rename or removal of a directory is done as a whole or not at all, twenty rounds",
      all: true,
      command: [...tests, "--minutes", "15", "tests/datalake/killed.slow.ts"],
      timeoutMs: 15 * minutes,
    },
    {
      title: "Hadoop's ABFS driver and Spark on an account with directories",
      guards: "Data Lake Storage for Hadoop: its shell, the driver's own tests, Spark's rename committer",
      all: true,
      // Where Java, Maven or a registry is away, they are skipped.
      command: [...tests, "--minutes", "15", "tests/datalake/hadoop.slow.ts"],
      timeoutMs: 25 * minutes,
    },
    {
      title: "drills on the compose file's profile of several hosts, and on two stamps",
      guards: "compose.ha.yml and compose.geo.yml",
      all: true,
      command: [...tests, "--minutes", "15", "tests/drills/compose-ha.slow.ts", "tests/drills/compose-geo.slow.ts"],
      timeoutMs: 20 * minutes,
      missing: engine,
    },
    {
      title: "copies that another front-end takes over; space that comes back; leases that run out",
      guards: "what waits long: a copier's death, collection and rewriting, leases over HTTP",
      all: true,
      command: [...tests, "tests/drills/copy-taken-over.slow.ts", "tests/drills/space.slow.ts", "tests/conformance/embedded.slow.ts"],
      timeoutMs: 20 * minutes,
    },
    {
      title: "two stamps: one is lost and comes back; with certificates between them",
      guards: "what a lost stamp is told when it answers, and who a peer may be",
      all: true,
      command: [...tests, "--minutes", "20", "tests/location/lost.slow.ts", "tests/location/tls.slow.ts"],
      timeoutMs: 28 * minutes,
    },
    {
      title: "seeds that caught a mutant, with all rules on",
      guards: "the same promises on the histories that come close to a rule",
      all: true,
      command: [...tests, "--minutes", "60", "packages/simulator/src/mutant-seeds.slow.ts"],
      timeoutMs: 60 * minutes,
      idle: true,
    },
  ];
}

/** Undefined when a Docker engine with compose answers, else why not. A machine that can be given one by a script is given one. */
async function dockerEngine(): Promise<string | undefined> {
  const answers = async (): Promise<boolean> =>
    (await run(["docker", "compose", "version"], minutes, { shown: false })).code === 0 &&
    (await run(["docker", "info"], minutes, { shown: false })).code === 0;
  if (await answers()) return undefined;
  const script = join(root, "../shared/tools/docker-engine.sh");
  if (!existsSync(script)) return "no Docker engine answers here";
  const made = await run(["bash", script], 6 * minutes, { shown: false });
  if (made.code === 0 && (await answers())) return undefined;
  return `no Docker engine could be started here: ${made.output.trim().split("\n").at(-1) ?? ""}`;
}

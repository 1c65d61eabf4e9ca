/**
 * The slower parts of `.ci/run`: types and lint, the real SDK against a real cluster, kill drills, the compose drill, one after another, and
 * beside them at the lowest priority what runs on virtual time. Takes what `npm test` had passed and failed, and prints the sum as its last
 * line; before it, every failed test. `./stamp ci --only "full disks" --only "the real SDK"` runs the parts whose titles begin so.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./commands.ts";
import { type FailedPart, failuresText, takeFailures } from "./failures.ts";
import { findProgram } from "./prometheus.ts";
import { type Part, run, runLane, secondsText } from "./run-part.ts";

const node = process.execPath;
/** Runs files of tests. A test that names no time of its own has 10 minutes, or as many as `--minutes` says. */
const tests = [node, "tests/tools/test.ts"];
const cli = "packages/cli/src/main.ts";
const slow = (path: string): string | undefined => (existsSync(join(root, path)) ? undefined : `${path} is not there`);
const minutes = 60_000;

async function parts(): Promise<Part[]> {
  const engine = await dockerEngine();
  const promtool = await findProgram("promtool");
  if ("path" in promtool) process.env.PROMTOOL = promtool.path;
  return [
    { title: "types, lint, generated code", command: [node, "tests/tools/check.ts"], timeoutMs: 5 * minutes },
    {
      title: "simulation seeds",
      command: [node, "packages/simulator/src/main.ts", "--seeds", "60", "--for-s", "300"],
      timeoutMs: 10 * minutes,
      missing: slow("packages/simulator/src/main.ts"),
    },
    {
      title: "seeds must fail with a rule off",
      // A seed at the lowest priority may wait long for a processor.
      command: [node, "packages/simulator/src/main.ts", "--mutations", "--budget", "400", "--seed-timeout-s", "1800"],
      timeoutMs: 60 * minutes,
      idle: true,
      missing: slow("packages/simulator/src/main.ts"),
    },
    {
      title: "seeds that failed once",
      command: [...tests, "--minutes", "60", "packages/simulator/src/kept-seeds.slow.ts"],
      timeoutMs: 60 * minutes,
      idle: true,
      missing: slow("packages/simulator/src/kept-seeds.slow.ts"),
    },
    {
      title: "the real SDK against a real cluster",
      command: [
        ...tests,
        "tests/conformance/sdk-cluster.slow.ts",
        "tests/conformance/authorization.slow.ts",
        "tests/conformance/customer-keys.slow.ts",
        "tests/conformance/queues/cluster.slow.ts",
        "tests/conformance/tables/cluster.slow.ts",
      ],
      timeoutMs: 12 * minutes,
      missing: slow("tests/conformance/sdk-cluster.slow.ts"),
    },
    {
      title: "drills on a real cluster",
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
      timeoutMs: 10 * minutes,
      // Writes were held up for longer than the aim, and every promise was kept: a busy machine. The conclusions say so.
      passesWith: 8,
    },
    {
      title: "recorded histories of SDK clients, and transactions, while processes are killed and stopped",
      command: [...tests, "tests/drills/histories.slow.ts", "tests/drills/transactions.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "damage by hand, fsck and repair; recovery of a large journal",
      command: [...tests, "tests/drills/damage.slow.ts", "services/extent-node/src/recovery/recovery-large.slow.ts"],
      timeoutMs: 20 * minutes,
    },
    {
      title: "the metadata store on a real etcd",
      command: [
        ...tests,
        "tests/etcd/adapter.slow.ts",
        "tests/etcd/lock-service.slow.ts",
        "tests/etcd/migrate.slow.ts",
        "tests/etcd/members.slow.ts",
        "tests/etcd/slow-disk.slow.ts",
      ],
      timeoutMs: 15 * minutes,
    },
    {
      title: "three hosts that lose one another; a dead host is replaced; clocks are set by an hour",
      // One after the other: two stamps of three hosts at once are too much for two processors.
      command: [
        ...tests,
        "--at-once",
        "1",
        "--minutes",
        "6",
        "tests/hosts/hosts.slow.ts",
        "tests/hosts/replace.slow.ts",
        "tests/hosts/clocks.slow.ts",
      ],
      timeoutMs: 13 * minutes,
    },
    {
      title: "full disks of a real cluster",
      command: [...tests, "--minutes", "15", "tests/drills/disk-full.slow.ts"],
      timeoutMs: 15 * minutes,
      missing: process.getuid?.() === 0 ? undefined : "mounting needs root",
    },
    {
      title: "coded extents: two of seven nodes killed and emptied under clients, and the commands of stamp coding",
      command: [...tests, "tests/drills/coding.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "a node with fragments is slow: reads of coded blobs",
      command: [node, cli, "drill", "run", "slow-fragment"],
      timeoutMs: 4 * minutes,
      passesWith: 8,
    },
    {
      title: "memory of every process under a large upload",
      command: [...tests, "tests/drills/upload-memory.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "a large upload over an extent node's and a front-end's death",
      command: [...tests, "tests/drills/big-upload.slow.ts"],
      timeoutMs: 10 * minutes,
      missing: slow("tests/drills/big-upload.slow.ts"),
    },
    {
      title: "rules for alerts, by promtool, and by Prometheus beside a cluster",
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
      title: "every command of the README and the guides, as written",
      command: [...tests, "--minutes", "12", "tests/drills/guides.slow.ts"],
      timeoutMs: 12 * minutes,
    },
    {
      title:
        "internal ports without the secret or a certificate; keys at rest; formats of a later release; uploads slower than a collection",
      command: [
        ...tests,
        "tests/drills/internal-ports.slow.ts",
        "tests/drills/cluster-tls.slow.ts",
        "tests/drills/keys-at-rest.slow.ts",
        "tests/drills/master-key.slow.ts",
        "tests/drills/older-metadata.slow.ts",
        "packages/embedded/src/newer-formats.slow.ts",
        "tests/drills/slow-upload.slow.ts",
      ],
      timeoutMs: 15 * minutes,
    },
    {
      title: "an upgrade process by process and host by host, the way back, and its end",
      // One after the other: two stamps at once are too much for two processors.
      command: [...tests, "--at-once", "1", "--minutes", "8", "packages/cli/src/upgrade/upgrade.slow.ts", "tests/hosts/upgrade.slow.ts"],
      timeoutMs: 14 * minutes,
    },
    {
      title: "a front-end that stops: a transfer on every door",
      command: [...tests, "tests/drills/drain.slow.ts"],
      timeoutMs: 3 * minutes,
    },
    {
      title:
        "the location service beside a real stamp; its processes killed; two stamps by one command, tables and blobs between them, one of them lost",
      // One after the other: three stamps at once are too much for two processors.
      command: [
        ...tests,
        "--at-once",
        "1",
        // The tests of one pair of stamps are one file.
        "--minutes",
        "20",
        "tests/location/processes.slow.ts",
        "tests/location/pair.slow.ts",
        "tests/location/removal.slow.ts",
        "tests/location/lost.slow.ts",
        "tests/location/tls.slow.ts",
        "tests/location/releases.slow.ts",
      ],
      timeoutMs: 28 * minutes,
    },
    {
      title: "findings of a real cluster; its supervisor killed",
      command: [...tests, "packages/cli/src/health/health.slow.ts", "tests/drills/supervisor-killed.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "signals of a real cluster, and the examples",
      command: [...tests, "tests/coordination/signals.slow.ts", "tests/coordination/measure.slow.ts", "tests/examples/examples.slow.ts"],
      timeoutMs: 10 * minutes,
    },
    {
      title: "turns of the event loop under the largest requests",
      // Each input is asked again when it is above the bound: a busy machine makes this part longer, and does not fail it.
      command: [node, "packages/bench/src/main.ts", "turns", "--scale", "0.02", "--tries", "1", "--tries-max", "6"],
      timeoutMs: 10 * minutes,
      missing: slow("packages/bench/src/main.ts"),
    },
    {
      title: "processor time of each operation against its budget",
      // A scenario that is above its budget is asked again, up to six times; under a high load nothing is judged.
      command: [node, "packages/bench/src/main.ts", "--budget"],
      timeoutMs: 10 * minutes,
      missing: slow("packages/bench/src/main.ts"),
    },
    {
      title: "SDKs of other languages",
      command: [...tests, "tests/interop/interop.slow.ts"],
      timeoutMs: 15 * minutes,
      missing: slow("tests/interop/interop.slow.ts"),
    },
    {
      title: "the Helm chart, by Helm's engine and the types of the API",
      // Go builds Helm once.
      command: [...tests, "--minutes", "11", "tests/helm/chart.slow.ts"],
      timeoutMs: 11 * minutes,
      missing: slow("tests/helm/chart.slow.ts"),
    },
    {
      title: "tools of other projects: backup, restore, compare",
      // Where a registry is away, its tools are skipped.
      command: [...tests, "--minutes", "15", "tests/interop/tools.slow.ts"],
      timeoutMs: 15 * minutes,
      missing: slow("tests/interop/tools.slow.ts"),
    },
    {
      title: "drills on the compose file, on its profile of several hosts, and on two stamps",
      command: [
        ...[...tests, "--minutes", "15"],
        ...["tests/drills/compose.slow.ts", "tests/drills/compose-ha.slow.ts", "tests/drills/compose-geo.slow.ts"],
      ],
      timeoutMs: 20 * minutes,
      missing: engine ?? slow("tests/drills/compose.slow.ts"),
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

/** What failed in `npm test`, from its records, or from its output if it ended before a test could fail. */
function failedBefore(failed: number): FailedPart[] {
  if (failed === 0) return [];
  const log = process.env.CI_NPM_TEST_LOG ?? "";
  return [{ title: "npm test", failures: takeFailures(), output: existsSync(log) ? readFileSync(log, "utf8") : "" }];
}

/** Exit code 2 for a wrong option, as of every command. */
function commandLine() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    console.error(`stamp ci: ${(error as Error).message} (see --help)`);
    process.exit(2);
  }
}

const options = { only: { type: "string", multiple: true }, help: { type: "boolean", short: "h" } } as const;
const { values, positionals } = commandLine();
if (values.help === true) {
  console.log(`Usage: stamp ci [--only TITLE]...

Runs the slower parts of .ci/run. --only: the parts whose titles begin so, e.g. --only "full disks". The parts:

${(await parts()).map(({ title }) => `  ${title}`).join("\n")}`);
  process.exit(0);
}
const beforeFailed = Number(positionals[1] ?? "0");
const startMs = performance.now();
const wanted = (await parts()).filter(({ title }) => values.only === undefined || values.only.some((begin) => title.startsWith(begin)));
const lanes = await Promise.all([true, false].map((idle) => runLane(wanted.filter((part) => (part.idle === true) === idle))));
const results = lanes.flat();
const sum = (of: "passed" | "failed"): number => results.reduce((total, each) => total + each[of], 0);
const [passed, failed] = [Number(positionals[0] ?? "0") + sum("passed"), beforeFailed + sum("failed")];
console.log(`\nslower parts took ${((performance.now() - startMs) / 1000).toFixed(0)} s`);
console.log(secondsText(results));
console.log(failuresText([...failedBefore(beforeFailed), ...results.filter((each) => each.failed > 0)]));
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);

/** Commands of the README and the guides stand where the test that runs them looks (tests/drills/guides.slow.ts), or say why they are not run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksOf, guides, textOf } from "../tools/guide-blocks.ts";

test("guides: commands stand in blocks that are run", () => {
  for (const guide of guides()) {
    const text = textOf(guide);
    const indented = text.match(/^ {4,}(?:\.\/stamp|stamp|docker|curl|npm|buf|grpcurl|kill|tar|cp) .*/gm) ?? [];
    const inBlocks = blocksOf(guide)
      .map(({ commands }) => commands)
      .join("\n");
    for (const line of indented) assert.ok(inBlocks.includes(line.trim()), `${guide}: not in a block of sh: ${line.trim()}`);
    const others = text.match(/^ *```(?:bash|shell|console|shell-session|)\n(?=[\s\S]*?```)/gm) ?? [];
    const opened = others.filter((fence) => /```[a-z]/.test(fence));
    assert.deepEqual(opened, [], `${guide}: blocks of commands are marked sh`);
    const marks = text.match(/<!-- (?:until Ctrl-C|not run: .+) -->/g) ?? [];
    assert.equal(blocksOf(guide).filter(({ how }) => how !== "run").length, marks.length, `${guide}: each mark stands before a block`);
  }
});

test("guides: blocks that are not run are these, each for its reason", () => {
  const notRun = guides().flatMap((guide) =>
    blocksOf(guide).flatMap(({ how, reason }) => (how === "not run" ? [`${guide}: ${reason}`] : [])),
  );
  assert.deepEqual(notRun, [
    "README.md: it is all tests, this one among them",
    "README.md: needs a Docker engine; tests/drills/compose.slow.ts has one",
    "README.md: needs a Docker engine; tests/drills/one-container.slow.ts has one",
    "docs/guides/data-lake.md: hadoop is no package of npm; tests/datalake/hadoop.slow.ts has it",
    "docs/guides/deploy.md: needs three hosts; tests/hosts/hosts.slow.ts has three network namespaces",
    "docs/guides/deploy.md: needs three hosts; tests/hosts/replace.slow.ts has four network namespaces",
    "docs/guides/deploy.md: needs three hosts; tests/hosts/hosts.slow.ts has three network namespaces",
    "docs/guides/deploy.md: needs three hosts; tests/hosts/replace.slow.ts has four network namespaces",
    "docs/guides/deploy.md: needs a Docker engine; tests/drills/one-container.slow.ts has one",
    "docs/guides/deploy.md: needs a Docker engine; tests/drills/compose-ha.slow.ts has one",
    "docs/guides/deploy.md: needs Kubernetes; tests/helm/chart.slow.ts renders the chart with Helm's engine",
    "docs/guides/deploy.md: installs a service; tests/hosts/systemd.test.ts has systemd check the unit",
    "docs/guides/erasure-coding.md: the cluster of the guides has four nodes, so no extent is coded",
    "docs/guides/erasure-coding.md: the cluster of the guides has four nodes, so no extent is coded",
    "docs/guides/erasure-coding.md: three minutes of drills; .ci/run runs slow-fragment",
    "docs/guides/etcd.md: needs an etcd; tests/etcd/migrate.slow.ts has one",
    "docs/guides/export-import.md: needs another server; tests/archive/archive.test.ts has one",
    "docs/guides/files.md: open runs until Ctrl-C, and the others take its handle; packages/cli/src/files/file-command.test.ts",
    "docs/guides/files.md: `rpc` is the function of grpc.md; tests/files/handles.test.ts makes these calls",
    "docs/guides/first-steps.md: needs a Docker engine; tests/drills/compose.slow.ts has one",
    "docs/guides/from-the-emulator.md: npx fetches the package",
    "docs/guides/from-the-emulator.md: needs an emulator; tests/archive/archive.test.ts imports from another stamp",
    "docs/guides/geo.md: two stamps at once are too much beside the guides' cluster; tests/location/pair/guide.ts runs these commands",
    "docs/guides/geo.md: needs a Docker engine; tests/drills/compose-geo.slow.ts has one",
    "docs/guides/geo.md: two stamps at once are too much beside the guides' cluster; tests/location/pair/guide.ts runs these commands",
    "docs/guides/geo.md: needs a second stamp; packages/ports-node/src/grpc/credentials/geo-peer.test.ts proves such secrets",
    "docs/guides/geo.md: a stamp is lost; services/location-service/src/lost-stamps/lost.test.ts loses some",
    "docs/guides/geo.md: needs two stamps with TLS; tests/location/tls.slow.ts makes and uses these certificates",
    "docs/guides/geo.md: each takes minutes and two stamps",
    "docs/guides/grpc.md: grpcurl is no package of npm",
    "docs/guides/init.md: it needs a file; packages/embedded/src/init.test.ts applies this one",
    "docs/guides/internal-ports.md: the cluster of the guides has no TLS; tests/drills/cluster-tls.slow.ts makes and rotates certificates",
    "docs/guides/keys-at-rest.md: the folder of this test has a key",
    "docs/guides/library.md: tests/drills/package.slow.ts installs the tarball and runs examples/node-test with it",
    "docs/guides/locations.md: needs processes beside the cluster; tests/location/processes.slow.ts starts them",
    "docs/guides/locations.md: needs processes beside the cluster; tests/location/processes.slow.ts issues and uses one",
    "docs/guides/locations.md: needs processes beside the cluster; tests/location/processes.slow.ts starts them",
    "docs/guides/locations.md: needs processes beside the cluster; packages/cli/src/geo/geo-command.test.ts types them",
    "docs/guides/metadata.md: needs five lock services; services/lock-service/src/consensus/member-commands.test.ts has them",
    "docs/guides/metadata.md: the stamp of this guide has three; packages/cluster/src/record/remembered.test.ts",
    "docs/guides/metadata.md: needs a Docker engine; tests/drills/compose.slow.ts has one",
    "docs/guides/package.md: tests/drills/package.slow.ts does all of this with the tarball",
    "docs/guides/package.md: tests/drills/package.slow.ts does all of this with the tarball",
    "docs/guides/running.md: goes on until Ctrl-C, and prints nothing while no client asks anything",
    "docs/guides/upgrade.md: there is no other release to change to",
    "docs/guides/upgrade.md: there is no other release to change to",
  ]);
});

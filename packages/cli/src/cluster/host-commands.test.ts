import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeDuty } from "@stamp/wire";
import { healthy } from "../health/testing/healthy.ts";
import { hostLines, refuseDrain } from "./host-commands.ts";

const node = (nodeId: string, up = true, duty: NodeDuty = NodeDuty.SERVING) => ({ nodeId, up, duty });
const config = { copies: 3, minCopies: 2 };

test("host drain: refused if the replicas have nowhere to go; a node that is away or leaves itself takes none", () => {
  const nodes = [node("extent-node-1"), node("extent-node-2"), node("extent-node-3"), node("extent-node-4")];
  assert.equal(refuseDrain(config, ["extent-node-4"], nodes), undefined);
  assert.match(
    refuseDrain(config, ["extent-node-3", "extent-node-4"], nodes) ?? "",
    /^without it 2 extent nodes would take replicas, and copies is 3/,
  );
  const away = nodes.with(0, node("extent-node-1", false));
  assert.match(refuseDrain(config, ["extent-node-4"], away) ?? "", /2 extent nodes/);
  const leaving = nodes.with(0, node("extent-node-1", true, NodeDuty.DRAINING));
  assert.match(refuseDrain(config, ["extent-node-4"], leaving) ?? "", /2 extent nodes/);
  assert.equal(refuseDrain(config, ["extent-node-9"], nodes.slice(0, 2)), undefined, "a host without replicas leaves at any time");
  const gone = [...nodes.slice(0, 2), node("extent-node-4", false, NodeDuty.DECOMMISSIONED)];
  assert.equal(refuseDrain(config, ["extent-node-4"], gone), undefined, "and so does one that was emptied before");
});

test("host list: what runs on each host, and what does not", () => {
  const names = healthy.processes.map(({ name }) => name);
  const { nodes = [] } = healthy.streamLayer ?? {};
  const [first] = nodes;
  assert.ok(first !== undefined);
  const topology = {
    hosts: {
      a: { address: "10.0.0.1", faultDomain: "rack", processes: names },
      b: { address: "10.0.0.2", processes: ["extent-node-99"] },
    },
    config: {},
  };
  const [a, b] = hostLines(topology, healthy);
  const replicas = nodes.reduce((sum, each) => sum + Number(each.replicas), 0);
  assert.deepEqual([a?.faultDomain, a?.upgradeDomain, a?.processes, a?.notReady, a?.duty], ["rack", "a", names.length, [], "serving"]);
  assert.equal(a?.replicas, replicas);
  assert.deepEqual([b?.faultDomain, b?.notReady, b?.replicas, b?.duty], ["b", ["extent-node-99"], 0, "-"]);
});

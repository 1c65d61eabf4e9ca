import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { NodeDuty, NodeInfoSchema } from "@stamp/wire";
import { listedNodes } from "./node-commands.ts";

test("node list: removed nodes are counted, and shown with --all only", () => {
  const duties = [NodeDuty.SERVING, NodeDuty.DECOMMISSIONED, NodeDuty.DRAINING, NodeDuty.DECOMMISSIONED];
  const nodes = duties.map((duty, i) => create(NodeInfoSchema, { nodeId: `extent-node-${i + 1}`, duty }));
  const names = (all: boolean) => listedNodes(nodes, all).nodes.map(({ nodeId }) => nodeId);
  assert.deepEqual(names(false), ["extent-node-1", "extent-node-3"]);
  assert.equal(listedNodes(nodes, false).removed, 2);
  assert.deepEqual(names(true), ["extent-node-1", "extent-node-2", "extent-node-3", "extent-node-4"]);
  assert.equal(listedNodes(nodes, true).removed, 0);
});

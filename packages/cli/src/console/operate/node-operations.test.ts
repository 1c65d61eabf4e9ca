import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { NodeDuty, NodeInfoSchema } from "@stamp/wire";
import { nameIn } from "../../status/status.ts";
import { nodeOperations } from "./node-operations.ts";

const never = new AbortController().signal;

/** Operations on a stamp of one node that notes what is done. */
function world({ duty = NodeDuty.SERVING as NodeDuty, replicas = 0n, refusal = "" } = {}) {
  const done: string[] = [];
  let node = create(NodeInfoSchema, { nodeId: "extent-node-1", duty, replicas, blocked: replicas > 0n ? ["no room elsewhere"] : [] });
  const manager = {
    setNodeDuty: async ({ nodeId, duty: given }: { readonly nodeId: string; readonly duty: NodeDuty }) => {
      done.push(`${nodeId} ${nameIn(NodeDuty, given)}`);
      node = { ...node, duty: given };
      return node;
    },
  };
  const operations = nodeOperations({
    inspector: () => ({
      change: (work) => work(manager as never, 1) as never,
      nodes: async () => [node],
    }),
    add: async () => {
      done.push("add");
      return "extent-node-2";
    },
    refuseRemoval: async () => {
      if (refusal !== "") throw new Error(refusal);
    },
    stopForGood: async (name) => {
      done.push(`stop ${name}`);
      return true;
    },
  });
  const run = async (what: string, fields: object = { node: "extent-node-1" }): Promise<object | undefined> =>
    operations[`/api/${what}`]?.(fields as never, never);
  return { run, done };
}

test("console: a node is added, drained and used again", async () => {
  const { run, done } = world();
  assert.deepEqual(await run("add-node", {}), { node: "extent-node-2" });
  await run("drain-node");
  await run("undrain-node");
  assert.deepEqual(done, ["add", "extent-node-1 draining", "extent-node-1 serving"]);
  await assert.rejects(run("drain-node", {}), /names no node/);
});

test("console: an empty node is drained, recorded as decommissioned and only then stopped", async () => {
  const { run, done } = world();
  assert.deepEqual(await run("remove-node"), { stopped: true });
  assert.deepEqual(done, ["extent-node-1 draining", "extent-node-1 decommissioned", "stop extent-node-1"]);
});

test("console: a node that holds replicas is drained and not stopped; the refusal says what it holds, in one line", async () => {
  const { run, done } = world({ replicas: 3n });
  await assert.rejects(run("remove-node"), /^Error: extent-node-1 holds 3 replicas still.*: no room elsewhere.*$/);
  assert.deepEqual(done, ["extent-node-1 draining"]);
});

test("console: a removal that was cut off goes on with stopping the node", async () => {
  const { run, done } = world({ duty: NodeDuty.DECOMMISSIONED });
  await run("remove-node");
  assert.deepEqual(done, ["stop extent-node-1"]);
});

test("console: a removal that leaves too few nodes changes nothing", async () => {
  const { run, done } = world({ refusal: "2 of the extent nodes would be left" });
  await assert.rejects(run("remove-node"), /2 of the extent nodes would be left/);
  assert.deepEqual(done, []);
});

import { strict as assert } from "node:assert";
import { test } from "node:test";
import { outgoingRemark, systemPorts } from "./outgoing-ports.ts";

const range = [32_768, 60_999] as const;

test("ports of outgoing connections: ports among them are told, with what to do; reserved ones and others are not", () => {
  const ports = [41_000, 41_001, 41_200];
  const told = outgoingRemark(ports, { range, reserved: "" });
  assert.match(told ?? "", /^3 ports \(41000-41200\) are among those .*\(32768-60999\)/);
  assert.match(told ?? "", /portBase below 32768, or .*ip_local_reserved_ports=41000-41200$/);
  assert.match(outgoingRemark([32_767, 32_768, 60_999, 61_000], { range, reserved: "" }) ?? "", /^2 ports \(32768-60999\)/);
  assert.match(outgoingRemark(ports, { range, reserved: "41000-41100" }) ?? "", /^a port \(41200\) is among/);
  assert.equal(outgoingRemark(ports, { range, reserved: "8080,41000-41100,41200" }), undefined);
  assert.equal(outgoingRemark([10_000, 10_212], { range, reserved: "" }), undefined);
  assert.equal(outgoingRemark(ports, { range: undefined, reserved: "" }), undefined);
});

test("ports of outgoing connections: the range is that of the system, or none", () => {
  const { range: found } = systemPorts();
  if (process.platform === "linux") assert.ok(found !== undefined && found[0] > 0 && found[0] <= found[1]);
  else assert.equal(found, undefined);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { connectionsThatFit, fittedDoors, openFilesMax } from "./open-files.ts";

const table = (soft: string): string => `Limit                     Soft Limit           Hard Limit           Units
Max processes             95                   95                   processes
Max open files            ${soft.padEnd(20)} 1048576              files
`;

test("open files: the soft limit counts; none where the system tells nothing, or has no bound", () => {
  assert.equal(openFilesMax(table("1024")), 1024);
  assert.equal(openFilesMax(table("unlimited")), undefined);
  assert.equal(openFilesMax(""), undefined);
  if (process.platform === "linux") assert.ok((openFilesMax() ?? 1) > 0);
});

test("open files: the doors share what is left, and never less than a few; as many as were asked for if they fit, without a word", () => {
  assert.equal(connectionsThatFit(1_024, 3), 288);
  assert.equal(connectionsThatFit(100, 3), 8);
  const told: unknown[] = [];
  const logger = { warn: (_: string, fields: unknown) => told.push(fields) };
  const doors = [{ name: "blob", limits: { connectionsMax: 100, headBytesMax: 5 } }, { name: "queue" }];
  assert.deepEqual(fittedDoors(doors, logger, 560), [
    { name: "blob", limits: { connectionsMax: 100, headBytesMax: 5 } },
    { name: "queue", limits: { connectionsMax: 200 } },
  ]);
  assert.deepEqual(told, [{ openFilesMax: 560, connectionsOfDoor: 200 }]);
  assert.equal(fittedDoors(doors, logger, 1_048_576)[1]?.limits.connectionsMax, 16_384);
  assert.equal(told.length, 1);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Changes } from "./changes.ts";

test("changes: whoever asks gets every key written since, once, or is told that it is not known any more", () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 4 }), { maxLength: 40 }), (transactions) => {
      const changes = new Changes(5, 10);
      const log: { version: number; key: string }[] = [];
      let version = 5;
      for (const keys of transactions) {
        version += 1;
        const written = [...new Set(keys)].map((key) => [`${key % 2 === 0 ? "a" : "b"}/${key}`, version] as const);
        changes.note(written);
        for (const [key] of written) log.push({ version, key });
        for (let since = 4; since <= version; since++) {
          const right = new Set(log.filter((one) => one.version > since && one.key.startsWith("a/")).map(({ key }) => key));
          const found = changes.since(since, "a/");
          if (found === undefined) assert.ok(since < 5 || log.filter((one) => one.version > since).length > 10, "ten keys are remembered");
          else assert.deepEqual(new Set(found), right);
          assert.equal(found?.length ?? 0, found === undefined ? 0 : right.size);
        }
      }
    }),
  );
});

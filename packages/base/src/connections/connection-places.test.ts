import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ConnectionPlaces } from "./connection-places.ts";

const options = { connectionsMax: 6, connectionsPerAddressMax: 4 };

test("places: at its own bound an address gives up its oldest idle connection, and without one the new one is refused", () => {
  const places = new ConnectionPlaces<string>(options);
  for (const name of ["a1", "a2", "a3", "a4"]) assert.equal(places.add(name, "a"), undefined);
  places.busy("a1");
  assert.equal(places.add("a5", "a"), "a2");
  for (const name of ["a3", "a4", "a5"]) places.busy(name);
  assert.equal(places.add("a6", "a"), "a6");
  places.idle("a4");
  assert.equal(places.add("a7", "a"), "a4");
  assert.equal(places.count, 4);
});

test("places: when all are taken the address with most gives way, busy or not, but never to one that would have as many", () => {
  const places = new ConnectionPlaces<string>(options);
  for (const name of ["a1", "a2", "a3", "a4", "b1", "c1"]) {
    places.add(name, name.slice(0, 1));
    places.busy(name);
  }
  assert.equal(places.add("d1", "d"), "a1");
  assert.equal(places.add("b2", "b"), "a2");
  places.idle("b1");
  assert.equal(places.add("c2", "c"), "c2", "a and b have two as c would");
  assert.equal(places.add("b3", "b"), "b2", "its own, which is idle for longest");
  assert.equal(places.count, 6);
});

test("places, whoever comes and goes: within both bounds, and an address with one connection keeps it while another has three", () => {
  const step = fc.record({ address: fc.constantFrom("a", "b", "c", "d"), what: fc.constantFrom("add", "add", "busy", "idle", "remove") });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const places = new ConnectionPlaces<string>(options);
      const open: string[] = [];
      const of = (address: string): string[] => open.filter((name) => name.startsWith(address));
      for (const [at, { address, what }] of steps.entries()) {
        const [oldest] = of(address);
        if (what === "add") {
          const before = new Map(["a", "b", "c", "d"].map((each) => [each, of(each).length]));
          const name = `${address}${at}`;
          const out = places.add(name, address);
          open.push(name);
          if (out !== undefined) {
            open.splice(open.indexOf(out), 1);
            const loser = out.slice(0, 1);
            if (loser !== address) assert.ok((before.get(loser) ?? 0) > (before.get(address) ?? 0) + 1);
          }
        } else if (oldest !== undefined) {
          places[what](oldest);
          if (what === "remove") open.splice(open.indexOf(oldest), 1);
        }
        assert.equal(places.count, open.length);
        assert.ok(open.length <= 6 && of(address).length <= 4);
      }
    }),
  );
});

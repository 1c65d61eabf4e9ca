/** Rights by operation: the reference's table, each right taken away once, and the sticky bit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { plainList } from "./access-list.ts";
import type { Guarded, Identity } from "./decide.ts";
import { allows, type GuardedDirectory, mayEmpty, type PathOperationName, pathNeeds } from "./needs.ts";
import { parseRights, rightsText } from "./rights.ts";

const eve: Identity = { id: "eve", groups: new Set(), superuser: false };

/** A directory or file of somebody else, with these rights for others. */
const giving = (rights: number, more: Partial<GuardedDirectory> = {}): GuardedDirectory => ({
  owner: "olga",
  group: "owners",
  access: plainList({ owner: 0, group: 0, other: rights, sticky: false }),
  sticky: false,
  ...more,
});

/** Rights on `/`, `/Oregon`, `/Oregon/Portland`, and on what the operation is about, as far as they are needed. */
const reference: readonly (readonly [operation: PathOperationName, rights: readonly string[]])[] = [
  ["ReadPath", ["--x", "--x", "--x", "r--"]],
  ["AppendData", ["--x", "--x", "--x", "rw-"]],
  ["FlushData", ["--x", "--x", "--x", "rw-"]],
  ["DeletePath", ["--x", "--x", "-wx", "---"]],
  ["CreateFile", ["--x", "--x", "-wx", "---"]],
  ["ListPaths", ["r-x"]],
  ["ListPaths", ["--x", "r-x"]],
  ["ListPaths", ["--x", "--x", "r-x"]],
  // Not in the reference's table.
  ["CreateDirectory", ["--x", "--x", "-wx", "---"]],
  ["RenamePath", ["--x", "--x", "-wx", "---"]],
  ["SetPathProperties", ["--x", "--x", "--x", "-w-"]],
  ["SetPathExpiry", ["--x", "--x", "--x", "-w-"]],
  ["LeasePath", ["--x", "--x", "--x", "-w-"]],
  ["GetPathProperties", ["--x", "--x", "--x", "r--"]],
  ["GetPathStatus", ["--x", "--x", "--x", "---"]],
  ["GetAccessControl", ["--x", "--x", "--x", "---"]],
  ["CheckAccess", ["--x", "--x", "--x", "---"]],
];

const judged = (identity: Identity, operation: PathOperationName, rights: readonly number[]): boolean => {
  const chain = rights.map((given) => giving(given));
  return allows(identity, operation, chain.slice(0, -1), chain.at(-1));
};

test("needs: the rights of the table are enough, and with any one less the operation is refused", () => {
  for (const [operation, texts] of reference) {
    const rights = texts.map((text) => parseRights(text) as number);
    assert.ok(judged(eve, operation, rights), `${operation} ${texts}`);
    for (const [at, given] of rights.entries()) {
      for (const right of [4, 2, 1].filter((one) => given & one)) {
        const less = rights.with(at, given & ~right);
        assert.ok(!judged(eve, operation, less), `${operation} ${less.map(rightsText)}`);
        assert.ok(judged({ ...eve, superuser: true }, operation, less), "a superuser needs no rights");
      }
    }
  }
  const inTable = new Set<string>([...reference.map(([operation]) => operation), "SetAccessControl", "SetAccessControlRecursively"]);
  assert.deepEqual(
    Object.keys(pathNeeds).filter((operation) => !inTable.has(operation)),
    [],
  );
});

test("needs: access control is changed by owners who can reach the path", () => {
  for (const operation of ["SetAccessControl", "SetAccessControlRecursively"] as const) {
    assert.ok(!judged(eve, operation, [7, 7, 7]), "all rights are not enough");
    const own: Guarded = giving(0, { owner: "eve" });
    assert.ok(allows(eve, operation, [giving(1), giving(1)], own));
    assert.ok(!allows(eve, operation, [giving(1), giving(6)], own));
    assert.ok(allows(eve, operation, [], own), "the root");
  }
});

test("needs: what a creation, a rename or a deletion would take the name of is spared by the sticky bit", () => {
  for (const operation of ["CreateFile", "CreateDirectory", "RenamePath", "DeletePath"] as const) {
    const above = (more: Partial<GuardedDirectory>): GuardedDirectory[] => [giving(1), giving(3, { sticky: true, ...more })];
    assert.ok(!allows(eve, operation, above({}), giving(7)), operation);
    assert.ok(allows(eve, operation, above({}), giving(0, { owner: "eve" })), "the child's owner");
    assert.ok(allows(eve, operation, above({}), undefined), "nothing is there");
    assert.ok(allows({ ...eve, superuser: true }, operation, above({}), giving(7)));
    const asOwner = plainList({ owner: 3, group: 0, other: 0, sticky: false });
    assert.ok(allows(eve, operation, above({ owner: "eve", access: asOwner }), giving(7)), "the directory's owner");
  }
  assert.ok(allows(eve, "AppendData", [giving(3, { sticky: true })], giving(6)), "what stays is not spared");
});

test("needs: a directory is emptied with all rights on it", () => {
  for (const rights of [0, 1, 2, 3, 4, 5, 6]) assert.ok(!mayEmpty(eve, giving(rights)));
  assert.ok(mayEmpty(eve, giving(7)) && mayEmpty({ ...eve, superuser: true }, giving(0)));
});

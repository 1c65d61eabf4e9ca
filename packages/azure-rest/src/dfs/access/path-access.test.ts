import assert from "node:assert/strict";
import { test } from "node:test";
import { entriesMax, listsText, parseLists } from "./access-list.ts";
import { changedPathAccess, newPathAccess, type PathAccess, parsePathAccess, pathAccessText, permissionsText } from "./path-access.ts";
import { parsePermissions } from "./rights.ts";

const nothing = { owner: undefined, group: undefined, permissions: undefined, lists: undefined };
const noneAsked = { asked: nothing, umask: undefined };

function okOf<T>(result: { readonly ok: true; readonly value: T } | { readonly ok: false }): T {
  assert.ok(result.ok);
  return result.value;
}

test("path access: what is kept is read back, and a path as the key makes it keeps nothing", () => {
  for (const kind of ["root", "directory", "file"] as const) {
    const plain = okOf(parsePathAccess(kind, undefined));
    assert.equal(pathAccessText(kind, plain), "");
    const named = Array.from({ length: entriesMax - 4 }, (_, index) => `user:user${index}@example.com:r-x`);
    const half = ["user::rwx", ...named, "group::r-x", "mask::r-x", "other::--x"];
    const full = [...half, ...half.map((entry) => `default:${entry}`)].join(",");
    for (const lists of ["user::rwx,group::r-x,other::---", full]) {
      const access: PathAccess = { owner: "me", group: "us", sticky: true, lists: okOf(parseLists(lists)) };
      const again = okOf(parsePathAccess(kind, pathAccessText(kind, access)));
      assert.deepEqual([again.owner, again.group, again.sticky, listsText(again.lists)], ["me", "us", true, listsText(access.lists)]);
    }
  }
  assert.equal(parsePathAccess("file", "me,us,-").ok, false);
});

test("path access: a new path has the group and the default list of its directory, and the owner that made it", () => {
  const lists = okOf(parseLists("user::rwx,group::---,other::---,default:user::rwx,default:group::rwx,default:other::--x"));
  const parent: PathAccess = { owner: "them", group: "us", sticky: true, lists };
  const file = newPathAccess("file", parent, "me", noneAsked);
  assert.deepEqual([file.owner, file.group, file.sticky, permissionsText(file)], ["me", "us", false, "rw-rw----"]);
  const directory = newPathAccess("directory", parent, "me", noneAsked);
  assert.equal(permissionsText(directory), "rwxrwx--x+");
  assert.deepEqual(directory.lists.defaults, lists.defaults);
  const given = newPathAccess("file", parent, "me", { asked: { ...nothing, owner: "you", group: "they" }, umask: undefined });
  assert.deepEqual([given.owner, given.group], ["you", "they"]);
});

test("path access: a change keeps what it does not name; a mode sets the sticky bit and takes it away, a list leaves it", () => {
  const held = okOf(
    parsePathAccess(
      "directory",
      "me,us,t,user::rwx,user:you:rwx,group::r-x,mask::rwx,other::---,default:user::rwx,default:group::---,default:other::---",
    ),
  );
  const moded = okOf(changedPathAccess("directory", held, { ...nothing, permissions: okOf(parsePermissions("0710")) }));
  assert.deepEqual([moded.owner, moded.sticky, permissionsText(moded)], ["me", false, "rwx--x---+"]);
  assert.deepEqual(moded.lists.defaults, held.lists.defaults);
  const listed = okOf(
    changedPathAccess("directory", held, { ...nothing, owner: "you", lists: okOf(parseLists("user::r--,group::---,other::---")) }),
  );
  assert.deepEqual([listed.owner, listed.group, listed.sticky, permissionsText(listed)], ["you", "us", true, "r-------T"]);
  const forFile = okOf(parseLists("user::r--,group::---,other::---,default:user::rwx,default:group::---,default:other::---"));
  assert.equal(changedPathAccess("file", held, { ...nothing, lists: forFile }).ok, false);
});

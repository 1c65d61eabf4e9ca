import assert from "node:assert/strict";
import { test } from "node:test";
import { entriesMax, listsText, parseAskedLists, parseLists } from "./access-list.ts";
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
    changedPathAccess("directory", held, { ...nothing, owner: "you", lists: okOf(parseAskedLists("user::r--,group::---,other::---")) }),
  );
  assert.deepEqual([listed.owner, listed.group, listed.sticky, permissionsText(listed)], ["you", "us", true, "r-------T"]);
  const forFile = okOf(parseAskedLists("user::r--,group::---,other::---,default:user::rwx,default:group::---,default:other::---"));
  assert.equal(changedPathAccess("file", held, { ...nothing, lists: forFile }).ok, false);
});

test("path access: lists that a request gives in part take from the path what they lack, as Hadoop's driver sends them", () => {
  const named = okOf(parsePathAccess("directory", "me,us,-,user::rwx,user:you:rwx,group::r-x,mask::rwx,other::---"));
  const plain = okOf(parsePathAccess("directory", "me,us,-,user::rwx,group::r-x,other::--x"));
  const after = (held: PathAccess, text: string): string =>
    listsText(okOf(changedPathAccess("directory", held, { ...nothing, lists: okOf(parseAskedLists(text)) })).lists);
  assert.equal(after(plain, "mask::--x"), "user::rwx,group::r-x,mask::--x,other::--x");
  assert.equal(after(named, "user:they:r--,group::---"), "user::rwx,user:they:r--,group::---,mask::r--,other::---");
  const kept = "user::rwx,user:you:rwx,group::r-x,mask::rwx,other::---";
  const defaults = "default:user::rwx,default:user:they:rwx,default:group::r-x,default:mask::rwx,default:other::---";
  assert.equal(after(named, "default:user:they:rwx"), `${kept},${defaults}`, "no entry is for the access list: it stays");
  const made = newPathAccess("directory", plain, "me", {
    asked: { ...nothing, lists: okOf(parseAskedLists("user:they:r--")) },
    umask: undefined,
  });
  assert.equal(listsText(made.lists), "user::rwx,user:they:r--,group::r-x,mask::r-x,other::---");
  const many = Array.from({ length: entriesMax - 3 }, (_, i) => `user:u${i}:r--`).join(",");
  assert.equal(parseAskedLists(many).ok, false, "with the mask there are too many");
});

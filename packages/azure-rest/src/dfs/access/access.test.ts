/** Access control lists: their written forms, what changes them, what new paths begin with, and the rule that decides. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Parsed } from "../../rest-error.ts";
import {
  type AccessLists,
  entriesMax,
  isExtended,
  listsText,
  modeOf,
  parseAskedLists,
  parseEntries,
  parseEntryNames,
  parseLists,
  rootLists,
  withEntries,
  withMode,
  withoutEntries,
} from "./access-list.ts";
import { grants, type Identity, mayChangeGroup, mayChangeLists, mayChangeOwner, sparedBySticky } from "./decide.ts";
import { accessOfNew } from "./new-path.ts";
import { modeOctal, modeText, parsePermissions, parseRights, parseUmask, rightsText } from "./rights.ts";

function okOf<T>(result: Parsed<T>): T {
  assert.ok(result.ok, result.ok ? "" : JSON.stringify(result.error.details));
  return result.value;
}

const lists = (text: string): AccessLists => okOf(parseLists(text));
const codeOf = (result: Parsed<unknown>): string => (result.ok ? "ok" : `${result.error.status} ${result.error.code}`);
const refused = "400 InvalidHeaderValue";

test("modes: octal and symbolic, with the sticky bit; a plus at the end is dropped", () => {
  for (const [text, symbolic, octal] of [
    ["0750", "rwxr-x---", "0750"],
    ["rwxrw-rw-", "rwxrw-rw-", "0766"],
    ["1777", "rwxrwxrwt", "1777"],
    ["rwxrwx--T", "rwxrwx--T", "1770"],
    ["rw-r-----+", "rw-r-----", "0640"],
    ["0000", "---------", "0000"],
  ] as const) {
    const mode = okOf(parsePermissions(text));
    assert.deepEqual([modeText(mode), modeOctal(mode)], [symbolic, octal], text);
  }
  assert.equal(modeText(okOf(parsePermissions("0750")), true), "rwxr-x---+");
  for (const text of [
    "",
    "750",
    "2750",
    "4777",
    "0780",
    "00750",
    "rwx",
    "RWXR-X---",
    "rwxrwxrwxx",
    "rwtrwxrwx",
    "xwrr-x---",
    "rwxr-x---++",
  ]) {
    assert.equal(codeOf(parsePermissions(text)), refused, text);
  }
});

test("umask: four octal digits without a sticky bit", () => {
  assert.equal(modeOctal(okOf(parseUmask("0057"))), "0057");
  for (const text of ["", "27", "027", "1027", "rwxr-x---", "0888"]) assert.equal(codeOf(parseUmask(text)), refused, text);
});

test("modes: every mode is read back from both of its forms", () => {
  const rights = fc.nat(7);
  fc.assert(
    fc.property(
      fc.record({ owner: rights, group: rights, other: rights, sticky: fc.boolean() }, { noNullPrototype: true }),
      fc.boolean(),
      (mode, extended) => {
        assert.deepEqual(okOf(parsePermissions(modeText(mode, extended))), mode);
        assert.deepEqual(okOf(parsePermissions(modeOctal(mode))), mode);
      },
    ),
  );
});

const someone = "5d5c6f0e-1f3a-4f6b-9d59-000000000001";
const another = "5d5c6f0e-1f3a-4f6b-9d59-000000000002";

test("lists: the short form is canonical", () => {
  for (const [text, canonical] of [
    ["user::rwx,group::r-x,other::---", "user::rwx,group::r-x,other::---"],
    ["other::---, group::r-x ,user::rwx", "user::rwx,group::r-x,other::---"],
    // The mask is the union of what it limits.
    [`user::rwx,user:${someone}:-w-,group::r--,other::--x`, `user::rwx,user:${someone}:-w-,group::r--,mask::rw-,other::--x`],
    [
      `user::rwx,group::r--,group:{${someone.toUpperCase()}}:rwx,mask::r--,other::---`,
      `user::rwx,group::r--,group:${someone}:rwx,mask::r--,other::---`,
    ],
    [
      `user:${another}:r--,user:${someone}:rwx,user:john.doe@contoso:rwx,user::rwx,group::r--,other::---,mask::rwx`,
      `user::rwx,user:${someone}:rwx,user:${another}:r--,user:john.doe@contoso:rwx,group::r--,mask::rwx,other::---`,
    ],
    // A default list takes what it lacks from the access list.
    [
      `user::rwx,group::r-x,other::--x,default:user:${someone}:rwx`,
      `user::rwx,group::r-x,other::--x,default:user::rwx,default:user:${someone}:rwx,default:group::r-x,default:mask::rwx,default:other::--x`,
    ],
  ] as const) {
    assert.equal(listsText(lists(text)), canonical);
    assert.equal(listsText(lists(canonical)), canonical);
  }
});

test("lists: what is not the short form is refused, with a reason", () => {
  const base = "user::rwx,group::r-x,other::---";
  for (const text of [
    "",
    "user::rwx",
    "user::rwx,group::r-x",
    "default:user::rwx,default:group::r-x,default:other::---",
    `${base},`,
    `${base},mask=rwx`,
    `${base},mask:rwx`,
    `${base},mask:${someone}:rwx`,
    `${base},other:${someone}:rwx`,
    `${base},user::r--`,
    `${base},user:${someone}:r--,user:${someone.toUpperCase()}:rw-`,
    `${base},owner:${someone}:r--`,
    `${base},access:user:${someone}:r--`,
    `${base},default:default:user::r--`,
    `${base},user:${someone}:rw`,
    `${base},user:${someone}:RWX`,
    `${base},user:${someone}:7`,
    `${base},user:${someone}`,
    `${base},user:${someone}:r--:x`,
    `${base},user:a b:r--`,
    `${base},user:${"a".repeat(257)}:r--`,
    `${base},user:a\u0001b:r--`,
    `${base},user:\u540d:r--`,
  ]) {
    const result = parseLists(text);
    assert.equal(codeOf(result), refused, text);
    assert.ok(!result.ok && (result.error.details.Reason ?? "").length > 10, text);
  }
});

test("lists: 32 entries each, the mask among them", () => {
  const named = (count: number, scope = ""): string => Array.from({ length: count }, (_, i) => `,${scope}user:u${i}:r--`).join("");
  const base = "user::rwx,group::r-x,other::---";
  assert.equal(codeOf(parseLists(base + named(entriesMax - 4))), "ok");
  assert.equal(codeOf(parseLists(base + named(entriesMax - 3))), refused);
  assert.equal(codeOf(parseLists(base + named(entriesMax - 4) + named(entriesMax - 4, "default:"))), "ok");
  assert.equal(codeOf(parseLists(base + named(entriesMax - 4) + named(entriesMax - 3, "default:"))), refused);
  assert.equal(codeOf(parseEntries(",".repeat(100_000))), refused);
  const full = lists(base + named(entriesMax - 4));
  assert.equal(codeOf(withEntries(full, okOf(parseEntries(`group:${someone}:r--`)))), refused, "also what is added");
});

test("lists: entries are changed and removed, and the mask follows unless it is named", () => {
  const before = lists(`user::rwx,user:${someone}:r--,group::r-x,other::---`);
  const after = (result: Parsed<AccessLists>): string => listsText(okOf(result));
  const modified = (text: string): string => after(withEntries(before, okOf(parseEntries(text))));
  const removed = (from: AccessLists, text: string): string => after(withoutEntries(from, okOf(parseEntryNames(text))));
  assert.equal(modified(`user:${another}:-w-`), `user::rwx,user:${someone}:r--,user:${another}:-w-,group::r-x,mask::rwx,other::---`);
  assert.equal(modified(`user:${someone}:rwx,mask::r--`), `user::rwx,user:${someone}:rwx,group::r-x,mask::r--,other::---`);
  assert.equal(
    modified("default:other::r--"),
    `user::rwx,user:${someone}:r--,group::r-x,mask::r-x,other::---,default:user::rwx,default:group::r-x,default:other::r--`,
  );
  assert.equal(removed(before, `user:${someone}`), "user::rwx,group::r-x,other::---");
  assert.equal(removed(before, `user:${another}`), listsText(before), "what is not there");
  assert.equal(
    removed(lists(`user::rwx,user:${someone}:r--,group::---,mask::rwx,other::---`), "mask"),
    `user::rwx,user:${someone}:r--,group::---,mask::r--,other::---`,
  );
  const both = lists(`user::rwx,group::r-x,other::---,default:user::rwx,default:user:${someone}:r--,default:group::--x,default:other::---`);
  assert.equal(
    removed(both, `mask:,default:mask::,default:group,default:user:${someone}:`),
    "user::rwx,group::r-x,other::---,default:user::rwx,default:group::r-x,default:other::---",
  );
  assert.equal(
    removed(both, `default:user,default:group,default:other,default:mask,default:user:${someone}`),
    "user::rwx,group::r-x,other::---",
  );
  for (const text of ["user:", "group", "other::", `user:${someone}:r--`, "mask::rwx", "", "x", `user:${someone}::`]) {
    assert.equal(codeOf(parseEntryNames(text)), refused, text);
  }
});

test("lists: the mode shows the mask in its middle, and changing it changes the mask", () => {
  const masked = lists(`user::rw-,user:${someone}:rwx,group::r-x,mask::r--,other::--x`);
  assert.equal(modeText(modeOf(masked.access, true), isExtended(masked)), "rw-r----t+");
  const changed = withMode(masked.access, okOf(parsePermissions("0730")));
  assert.equal(listsText({ access: changed, defaults: undefined }), `user::rwx,user:${someone}:rwx,group::r-x,mask::-wx,other::---`);
  assert.equal(modeText(modeOf(rootLists.access, false), isExtended(rootLists)), "rwxr-x---");
  assert.equal(
    listsText({ access: withMode(rootLists.access, okOf(parsePermissions("0604"))), defaults: undefined }),
    "user::rw-,group::---,other::r--",
  );
  assert.ok(isExtended(lists("user::rwx,group::r-x,other::---,default:other::---")), "a default list alone");
});

const id = fc.constantFrom(someone, another, "a", "b@c", "$superuser");
const rights = fc.nat(7);
const named = (kind: "user" | "group") =>
  fc.uniqueArray(id, { maxLength: 4 }).chain((ids) => fc.tuple(...ids.map((of) => rights.map((r) => `${kind}:${of}:${rightsText(r)}`))));
const half = fc
  .tuple(rights, rights, rights, named("user"), named("group"), fc.option(rights))
  .map(([owner, group, other, users, groups, mask]) => [
    `user::${rightsText(owner)}`,
    `group::${rightsText(group)}`,
    `other::${rightsText(other)}`,
    ...users,
    ...groups,
    ...(mask === null ? [] : [`mask::${rightsText(mask)}`]),
  ]);
const anyLists = fc
  .tuple(half, fc.option(half))
  .map(([access, defaults]) => [...access, ...(defaults ?? []).map((entry) => `default:${entry}`)].join(","));

test("lists: any lists are read back from their short form; nothing that is sent throws", () => {
  fc.assert(
    fc.property(anyLists, (text) => assert.deepEqual(lists(listsText(lists(text))), lists(text))),
    { numRuns: 300 },
  );
  const piece = fc.oneof(
    fc.string({ unit: "binary", maxLength: 8 }),
    fc.constantFrom("user", "group", "mask", "other", "default", ":", "::", ",", "rwx", "r--", someone),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const text = pieces.join("");
      for (const result of [parseLists(text), parseEntries(text), parseEntryNames(text)])
        assert.ok(result.ok || codeOf(result) === refused);
      for (const result of [parsePermissions(text), parseUmask(text)]) assert.ok(result.ok || codeOf(result) === refused);
    }),
    { numRuns: 500 },
  );
});

test("new paths: the umask without a default list, the permissions within a default list, or the request's own lists", () => {
  const asked = (permissions?: string, umask?: string) => ({
    permissions: permissions === undefined ? undefined : okOf(parsePermissions(permissions)),
    umask: umask === undefined ? undefined : okOf(parseUmask(umask)),
  });
  const parent = lists(
    `user::rwx,group::r-x,other::---,default:user::rwx,default:user:${someone}:rwx,default:group::r-x,default:other::r-x`,
  ).defaults;
  const shown = (kind: "file" | "directory", from: AccessLists["defaults"], request = asked()): string => {
    const made = accessOfNew(kind, from, request);
    return `${modeText(modeOf(made.lists.access, made.sticky), isExtended(made.lists))} ${listsText(made.lists)}`;
  };
  assert.equal(shown("directory", undefined), "rwxr-x--- user::rwx,group::r-x,other::---");
  assert.equal(shown("file", undefined), "rw-r----- user::rw-,group::r--,other::---");
  assert.equal(
    shown("directory", undefined, asked("0777", "0057")),
    "rwx-w---- user::rwx,group::-w-,other::---",
    "the reference's example",
  );
  assert.equal(shown("directory", undefined, asked("1777", "0000")), "rwxrwxrwt user::rwx,group::rwx,other::rwx");
  const inherited = `default:user::rwx,default:user:${someone}:rwx,default:group::r-x,default:mask::rwx,default:other::r-x`;
  assert.equal(
    shown("directory", parent, asked(undefined, "0777")),
    `rwxrwxr-x+ user::rwx,user:${someone}:rwx,group::r-x,mask::rwx,other::r-x,${inherited}`,
  );
  assert.equal(shown("file", parent), `rw-rw-r--+ user::rw-,user:${someone}:rwx,group::r-x,mask::rw-,other::r--`);
  assert.equal(shown("file", parent, asked("0700")), `rwx------+ user::rwx,user:${someone}:rwx,group::r-x,mask::---,other::---`);
  assert.equal(
    shown("file", lists("user::rwx,group::rwx,other::rwx,default:other::rwx").defaults, asked("0750")),
    "rwxr-x--- user::rwx,group::r-x,other::---",
  );
  const own = { ...asked("1700", "0777"), lists: okOf(parseAskedLists("user::r--,group::r--,other::r--")) };
  assert.equal(shown("directory", parent, own), "r--r--r-T user::r--,group::r--,other::r--");
});

const who = (name: string, groups: readonly string[] = [], superuser = false): Identity => ({
  id: name,
  groups: new Set(groups),
  superuser,
});

test("deciding: the first of owner, named user, groups, others that the caller is", () => {
  const text = "user::r-x,user:ann:rwx,user:bob:---,group::rw-,group:staff:--x,group:ops:-wx,mask::rw-,other::r-x";
  const path = { owner: "olga", group: "owners", access: lists(text).access };
  for (const [identity, granted] of [
    [who("olga"), "r-x"],
    [who("olga", ["owners", "ops"]), "r-x"],
    [who("ann"), "rw-"],
    [who("bob", ["owners", "staff", "ops"]), "---"],
    [who("eve", ["owners"]), "rw-"],
    [who("eve", ["ops"]), "rw-"],
    [who("eve", ["staff"]), "r--"],
    [who("eve"), "r--"],
    [who("eve", ["strangers"]), "r--"],
    [who("bob", [], true), "rwx"],
  ] as const) {
    const each = [4, 2, 1].filter((right) => grants(identity, path, right)).reduce((all, right) => all + right, 0);
    assert.equal(rightsText(each), granted, `${identity.id} of ${[...identity.groups]}`);
    assert.ok(grants(identity, path, 0), "nothing is granted to everybody");
  }
  const split = { ...path, access: lists("user::---,group::r--,group:ops:-w-,other::---").access };
  assert.ok(grants(who("eve", ["owners", "ops"]), split, 4) && grants(who("eve", ["owners", "ops"]), split, 2));
  assert.ok(!grants(who("eve", ["owners", "ops"]), split, 6), "one group has all wanted rights, or none counts");
  const closed = { ...path, access: lists("user::---,group::---,other::rwx").access };
  assert.ok(grants(who("eve", ["owners"]), closed, 7), "a member whose group has too little is judged as others are");
  assert.ok(!grants(who("olga"), closed, 1), "an owner is not");
});

test("deciding: owners are compared by their canonical ids", () => {
  const path = {
    owner: `{${someone.toUpperCase()}}`,
    group: another.toUpperCase(),
    access: lists("user::rwx,group::-w-,other::---").access,
  };
  assert.ok(grants(who(someone), path, 7));
  assert.ok(grants(who("eve", [another]), path, 2));
  assert.ok(mayChangeLists(who(someone), path) && mayChangeGroup(who(someone), path, another));
});

/** The reference's algorithm, over the entries as they are written. */
function byReference(identity: Identity, owner: string, group: string, text: string, wanted: number): boolean {
  const entries = text.split(",").map((entry) => entry.split(":") as [string, string, string]);
  const of = (kind: string): { who: string; rights: number }[] =>
    entries.filter(([one]) => one === kind).map(([, name, last]) => ({ who: name, rights: parseRights(last) as number }));
  const fits = (given: number): boolean => (wanted & given) === wanted;
  if (identity.superuser) return true;
  if (identity.id === owner) return of("user").some(({ who: name, rights: given }) => name === "" && fits(given));
  const mask = of("mask")[0]?.rights ?? 7;
  for (const { who: name, rights: given } of of("user")) if (name === identity.id) return fits(given & mask);
  for (const { who: name, rights: given } of of("group"))
    if (identity.groups.has(name === "" ? group : name) && fits(given & mask)) return true;
  return fits((of("other")[0] as { rights: number }).rights & mask);
}

test("deciding: as the reference's algorithm does, for any list and any caller", () => {
  const identity = fc.record({
    id,
    groups: fc.uniqueArray(id).map((groups) => new Set(groups)),
    superuser: fc.integer({ max: 9, min: 0 }).map((n) => n === 0),
  });
  fc.assert(
    fc.property(half, identity, id, id, rights, rights, (entries, caller, owner, group, wanted, more) => {
      const { access } = lists(entries.join(","));
      const path = { owner, group, access };
      assert.equal(grants(caller, path, wanted), byReference(caller, owner, group, listsText({ access, defaults: undefined }), wanted));
      if (grants(caller, path, wanted | more)) assert.ok(grants(caller, path, wanted), "who has more rights has fewer");
      if (!caller.superuser && caller.id !== owner && (wanted & ~(access.mask ?? 7)) !== 0)
        assert.ok(!grants(caller, path, wanted), "the mask");
    }),
    { numRuns: 1000 },
  );
});

test("the sticky bit: the child's owner, the directory's owner and superusers remove and rename", () => {
  for (const [identity, spared] of [
    [who("child"), true],
    [who("parent"), true],
    [who("eve"), false],
    [who("eve", ["child", "parent"]), false],
    [who("eve", [], true), true],
  ] as const) {
    assert.equal(sparedBySticky(identity, { owner: "parent", sticky: true }, "child"), spared, identity.id);
    assert.ok(sparedBySticky(identity, { owner: "parent", sticky: false }, "child"));
  }
});

test("changes: lists by owners, owners by superusers, groups by owners who are members", () => {
  const path = { owner: "olga", group: "owners" };
  for (const [identity, ofLists, ofOwner, ofGroup] of [
    [who("olga", ["staff"]), true, false, true],
    [who("olga"), true, false, false],
    [who("eve", ["owners", "staff"]), false, false, false],
    [who("eve", [], true), true, true, true],
  ] as const) {
    assert.deepEqual(
      [mayChangeLists(identity, path), mayChangeOwner(identity, path, "eve"), mayChangeGroup(identity, path, "staff")],
      [ofLists, ofOwner, ofGroup],
    );
    assert.ok(mayChangeOwner(identity, path, "olga") && mayChangeGroup(identity, path, "owners"), "what stays is no change");
  }
});

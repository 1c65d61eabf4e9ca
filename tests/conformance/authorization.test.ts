/** What authorization depends on besides operation and letters (authorization.slow.ts walks those), against a running stamp. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { authorizationPage, authorizationPagePath } from "../tools/authorization-docs.ts";
import { type Answer, authorizationStamp, noAuthentication, noPermission, services, version } from "./authorization-stamp.ts";
import { expectedRows } from "./authorization-table.ts";
import { bearerHeaders, type DelegationKey } from "./delegation.ts";
import { accountSas, delegationSas, type SasFields, serviceSas } from "./sas-by-hand.ts";
import { accountName } from "./scripted-stamp.ts";
import type { Clients } from "./target.ts";

test("docs/api/authorization.md is what is expected (node tests/tools/authorization-docs.ts writes it)", () => {
  assert.equal(readFileSync(authorizationPagePath, "utf8"), authorizationPage());
});

suite("authorization", () => {
  const { ask, asked, clients, code, expectLetIn, inParallel, isEnough, keys, logged, noneWrong, owner, signed, stamp, withQuery } =
    authorizationStamp();

  test("the operator forbids public access: public containers are closed at once, none is made, and it can be allowed again", async () => {
    await stamp().setBlobSettings({ allowPublicAccess: false });
    const no = "409 PublicAccessNotPermitted";
    await inParallel(expectedRows.blob, async (row) => {
      const told = await asked("blob", row, "", {}, "walkcontainer");
      expectLetIn(`${row.operation}, nobody, forbidden`, told, false, row.anonymous === "none" ? noAuthentication : no);
    });
    noneWrong();
    assert.equal(await code("blob", "GET", "/nothing-there/b"), no, "whether a container is there is not told");
    const raw = async (path: string, headers = {}): Promise<string> => {
      const answer = await (clients.get("blob") as Clients).raw("PUT", path, { headers });
      return `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
    };
    const isPublic = { "x-ms-blob-public-access": "blob" };
    assert.equal(await raw("/walk?restype=container&comp=acl", isPublic), no);
    assert.equal(await raw("/forbidden?restype=container", isPublic), no);
    assert.equal(await raw("/walk?restype=container&comp=acl"), "200");
    const sas = serviceSas(signed("blob"), "walkblob", "r", { sr: "c" });
    assert.equal(await code("blob", "GET", withQuery("/walkblob/b", sas)), "200", "who shows something is not nobody");
    await stamp().setBlobSettings({ versioning: false });
    assert.equal(await code("blob", "GET", "/walkblob/b"), no, "other settings leave it as it is");
    await stamp().setBlobSettings({ allowPublicAccess: true });
    assert.equal(await code("blob", "GET", "/walkblob/b"), "200");
  });

  const inContainer = (sp: string, more: SasFields = {}): string => serviceSas(signed("blob"), "walk", sp, { sr: "c", ...more });
  const blockBlob = { "x-ms-blob-type": "BlockBlob" };

  test("create alone overwrites nothing, whichever operation makes the blob", async () => {
    const no = "403 UnauthorizedBlobOverwrite";
    const source = `${stamp().endpoints.blob}/walk/b?${inContainer("r")}`;
    const here = { "x-ms-copy-source": source };
    const delegated = delegationSas(signed("blob"), keys.get("blob own") as DelegationKey, "walk", "c", { sr: "c" });
    const list = '<?xml version="1.0"?><BlockList><Latest>YQ==</Latest></BlockList>';
    const block = "/walk/made-blocks?comp=block&blockid=YQ%3D%3D";
    const makers: [string, string, Record<string, string>, string, string][] = [
      ["/walk/made", inContainer("c"), blockBlob, "x", "201"],
      ["/walk/made-copy", inContainer("c"), here, "", "202"],
      ["/walk/made-sync", inContainer("c"), { ...here, "x-ms-requires-sync": "true" }, "", "202"],
      ["/walk/made-url", inContainer("c"), { ...here, ...blockBlob }, "", "201"],
      ["/walk/made-blocks?comp=blocklist", delegated, {}, list, "201"],
    ];
    for (const [path, sas, headers, body, made] of makers) {
      if (path.includes("blocklist")) assert.equal(await code("blob", "PUT", withQuery(block, delegated), {}, "abc"), "201");
      assert.equal(await code("blob", "PUT", withQuery(path, sas), headers, body), made, path);
      if (path.includes("blocklist")) assert.equal(await code("blob", "PUT", withQuery(block, delegated), {}, "xyz"), "201");
      assert.equal(await code("blob", "PUT", withQuery(path, sas), headers, body), no, path);
    }
  });

  test("tags are told to those who may read them: the count as well as the list", async () => {
    const shows = async (sp: string): Promise<(string | boolean | undefined)[]> => {
      const [head, get, list] = [
        await ask("blob", "HEAD", withQuery("/walk/b", inContainer(sp))),
        await ask("blob", "GET", withQuery("/walk/b", inContainer(sp))),
        await ask("blob", "GET", withQuery("/walk?restype=container&comp=list", inContainer(sp))),
      ];
      const count = (answer: Answer) => answer.headers["x-ms-tag-count"] as string | undefined;
      return [count(head), count(get), list.text.includes("<TagCount>")];
    };
    assert.deepEqual(await shows("rl"), [undefined, undefined, false]);
    assert.deepEqual(await shows("rlt"), ["1", "1", true]);
    const anonymous = await ask("blob", "GET", "/walkblob/b");
    assert.deepEqual([anonymous.status, anonymous.headers["x-ms-tag-count"]], [200, undefined]);
    assert.match((await ask("blob", "GET", withQuery("/walk?restype=container&comp=list&include=tags", inContainer("lt")))).text, /<Tags>/);
  });

  test("nobody sees a blob before it is committed, in a public container, by any operation", async () => {
    await owner("blob", "PUT", "/walkcontainer/staged?comp=block&blockid=YQ%3D%3D", {}, "abc");
    const absent = await ask("blob", "GET", "/walkcontainer/not-there?comp=blocklist");
    for (const [method, query] of [
      ["GET", ""],
      ["HEAD", ""],
      ["GET", "?comp=metadata"],
      ["GET", "?comp=blocklist"],
      ["GET", "?comp=pagelist"],
    ]) {
      const [staged, missing] = [
        await code("blob", method as string, `/walkcontainer/staged${query}`),
        await code("blob", method as string, `/walkcontainer/not-there${query}`),
      ];
      assert.match(staged, /^404 /, `${method} ${query}`);
      assert.equal(staged, missing, `${method} ${query}: it is told like one that is not there`);
    }
    assert.equal(absent.status, 404);
    assert.doesNotMatch((await ask("blob", "GET", "/walkcontainer?restype=container&comp=list")).text, /staged/);
    await owner("blob", "PUT", "/walkcontainer/b?comp=block&blockid=YQ%3D%3D", {}, "abc");
    assert.doesNotMatch((await ask("blob", "GET", "/walkcontainer/b?comp=blocklist")).text, /UncommittedBlocks>\s*<Block/);
  });

  test("the source of a copy is authorized on its own: content by r, its tags and conditions on them by t", async () => {
    const to = (headers: Record<string, string>, sp = "wt"): Promise<string> =>
      code("blob", "PUT", withQuery("/walk/copied", inContainer(sp)), { "x-ms-requires-sync": "true", ...headers });
    const from = (sp: string): Record<string, string> => ({ "x-ms-copy-source": `${stamp().endpoints.blob}/walk/b?${inContainer(sp)}` });
    const bare = { "x-ms-copy-source": `${stamp().endpoints.blob}/walk/b` };
    assert.equal(await to(from("r")), "202");
    assert.match(await to(from("w")), /^403 CannotVerifyCopySource/);
    assert.match(await to(bare), /^401 CannotVerifyCopySource|^404 CannotVerifyCopySource/);
    const tags = { "x-ms-copy-source-tag-option": "COPY" };
    assert.match(await to({ ...from("r"), ...tags }), /^403 CannotVerifyCopySource/);
    assert.equal(await to({ ...from("rt"), ...tags }), "202");
    assert.equal(await to({ ...from("rt"), ...tags }, "w"), noPermission);
    const later = (sp: string): Promise<string> =>
      code("blob", "PUT", withQuery("/walk/copied-later", inContainer("w")), { ...from(sp), "x-ms-source-if-tags": "a='b'" });
    assert.match(await later("r"), /^403 CannotVerifyCopySource/);
    assert.equal(await later("rt"), "202");
  });

  test("a batch: each request in it by its own SAS", async () => {
    for (const name of ["one", "two"]) await owner("blob", "PUT", `/walk/${name}`, blockBlob, "x");
    const part = (name: string, sas: string): string =>
      `--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nDELETE /${accountName}/walk/${name}?${sas} HTTP/1.1\r\n` +
      "Content-Length: 0\r\n\r\n";
    const body = `${part("one", inContainer("d"))}${part("two", inContainer("rw"))}${part("two", "")}--b--\r\n`;
    const outer = withQuery("/walk?restype=container&comp=batch", inContainer("rwdl"));
    const answer = await ask("blob", "POST", outer, { "content-type": "multipart/mixed; boundary=b" }, body);
    assert.deepEqual(answer.text.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 202", "HTTP/1.1 403", "HTTP/1.1 401"]);
  });

  test("a lease is broken with d since 2017-07-29, and only broken", async () => {
    const lease = (action: string, sv: string): Promise<string> => {
      const fields = { sr: "c", sv };
      // Before 2018-11-09 the text has no lines of resource, time and scope.
      const sas = sv < "2018-11-09" ? accountSas(signed("blob"), "b", "o", "d", { sv: "2016-05-31" }) : inContainer("d", fields);
      return code("blob", "PUT", withQuery("/walk/b?comp=lease", sas), { "x-ms-lease-action": action });
    };
    await owner("blob", "PUT", "/walk/b?comp=lease", { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" });
    assert.equal(await lease("break", "2016-05-31"), "403 AuthenticationFailed");
    assert.equal(await lease("acquire", version), noPermission);
    assert.equal(await lease("break", version), "202");
  });

  test("operations inside a transaction: each letter for what it is for, an upsert with both", async () => {
    const change = (method: string, headers = ""): string => {
      const url = `${stamp().endpoints.table}/walk(PartitionKey='p',RowKey='r')`;
      return (
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
        `${method} ${method === "POST" ? `${stamp().endpoints.table}/walk` : url} HTTP/1.1\r\nContent-Type: application/json\r\n` +
        `Accept: application/json\r\n${headers}\r\n{"PartitionKey":"p","RowKey":"r"}\r\n--c--\r\n--b--\r\n`
      );
    };
    const query = `--b\r\nContent-Type: application/http\r\n\r\nGET ${stamp().endpoints.table}/walk() HTTP/1.1\r\nAccept: application/json\r\n\r\n--b--\r\n`;
    const told = async (sp: string, body: string, more: SasFields = {}): Promise<string> => {
      const sas = serviceSas(signed("table"), "walk", sp, { tn: "walk", ...more });
      const answer = await ask("table", "POST", `/$batch?${sas}`, { "content-type": "multipart/mixed; boundary=b" }, body);
      return /HTTP\/1\.1 (\d+)/.exec(answer.text)?.[1] ?? answer.told;
    };
    const any = "If-Match: *\r\n";
    for (const [what, groups, body] of [
      ["insert", ["a"], change("POST")],
      ["insert or replace", ["a", "u"], change("PUT")],
      ["insert or merge", ["a", "u"], change("MERGE")],
      ["update", ["u"], change("PUT", any)],
      ["merge", ["u"], change("MERGE", any)],
      ["delete", ["d"], change("DELETE", any)],
      ["query", ["r"], query],
    ] as const) {
      for (const held of ["r", "a", "u", "d", "raud", "rud", "rad", "rau", "aud"]) {
        const refused = (await told(held, body)) === "403";
        assert.equal(!refused, isEnough(groups, held), `${what} with ${held}`);
      }
    }
    assert.equal(await told("raud", change("PUT"), { spk: "q" }), "403");
    assert.equal(await told("raud", change("PUT"), { spk: "p", srk: "r", epk: "p", erk: "r" }), "204");
    assert.equal(await told("raud", change("PUT"), { spk: "p", srk: "s" }), "403");
  });

  test("ranges of entities bound every operation, and a row key without its partition key is refused", async () => {
    for (const [partition, row] of ["a1", "a2", "b1", "b2", "c1"].map((text) => [...text])) {
      const json = { "content-type": "application/json" };
      await owner("table", "POST", "/walk", json, JSON.stringify({ PartitionKey: partition, RowKey: row }));
    }
    const sas = (range: SasFields, sp = "raud"): string => serviceSas(signed("table"), "walk", sp, { tn: "walk", ...range });
    const seen = async (range: SasFields): Promise<string> => {
      const answer = await ask("table", "GET", `/walk()?$filter=PartitionKey%20lt%20'd'&${sas(range)}`, { accept: "application/json" });
      if (answer.status !== 200) return answer.told;
      const { value } = JSON.parse(answer.text) as { value: { PartitionKey: string; RowKey: string }[] };
      return value.map(({ PartitionKey, RowKey }) => PartitionKey + RowKey).join(" ");
    };
    const no = "403 AuthenticationFailed";
    for (const [range, expected] of [
      [{}, "a1 a2 b1 b2 c1"],
      [{ spk: "b" }, "b1 b2 c1"],
      [{ epk: "b" }, "a1 a2 b1 b2"],
      [{ spk: "a", srk: "2" }, "a2 b1 b2 c1"],
      [{ epk: "b", erk: "1" }, "a1 a2 b1"],
      [{ spk: "a", srk: "2", epk: "b", erk: "1" }, "a2 b1"],
      [{ spk: "b", epk: "b" }, "b1 b2"],
      [{ spk: "b", srk: "2", epk: "b", erk: "2" }, "b2"],
      [{ spk: "c", epk: "a" }, ""],
      [{ srk: "2" }, no],
      [{ erk: "1" }, no],
      [{ srk: "2", erk: "2" }, no],
      [{ spk: "a", erk: "2" }, no],
      [{ epk: "a", srk: "2" }, no],
    ] as const) {
      assert.equal(await seen(range), expected, JSON.stringify(range));
      const inside = expected.split(" ").includes("b1");
      const path = "/walk(PartitionKey='b',RowKey='1')";
      const refusal = expected === no ? no : "403 AuthorizationFailure";
      const one = await code("table", "GET", `${path}?${sas(range)}`, { accept: "application/json" });
      assert.equal(one, inside ? "200" : refusal, `get: ${JSON.stringify(range)}`);
      const body = '{"PartitionKey":"b","RowKey":"1"}';
      const changed = await code("table", "PUT", `${path}?${sas(range)}`, { "content-type": "application/json" }, body);
      assert.equal(changed, inside ? "204" : refusal, `replace: ${JSON.stringify(range)}`);
    }
  });

  test("the key that everybody knows is good on this machine only: not through a proxy, whatever the request brings along", async () => {
    const no = "403 AuthenticationFailed";
    const sas = inContainer("r");
    const get = (headers: Record<string, string>): Promise<string> => code("blob", "GET", withQuery("/walk/b", sas), headers);
    const { host } = new URL(stamp().endpoints.blob);
    assert.equal(await get({ host }), "200");
    assert.equal(await get({ host: host.replace("127.0.0.1", "localhost") }), "200");
    const proxied: Record<string, string>[] = [
      { "x-forwarded-for": "10.0.0.1" },
      { "x-forwarded-proto": "https" },
      { forwarded: "for=10.0.0.1" },
      { via: "1.1 proxy" },
      { host: "storage.example" },
    ];
    for (const headers of proxied) assert.equal(await get(headers), no, JSON.stringify(headers));
    const byKey = await (clients.get("blob") as Clients).raw("GET", "/walk/b", { headers: { "x-forwarded-for": "10.0.0.1" } });
    assert.equal(byKey.status, 403);
    assert.match(await byKey.text(), /devstoreaccount1/);
    const token = await bearerHeaders(clients.get("blob") as Clients, "owners");
    const bearer = { ...token, "x-forwarded-for": "10.0.0.1" };
    assert.equal(await code("blob", "GET", "/walk/b", bearer), "200", "who shows something else is not concerned");
    const part =
      "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
      `DELETE /${accountName}/walk/nothing?${inContainer("d")} HTTP/1.1\r\nContent-Length: 0\r\n\r\n--b--\r\n`;
    const batch = { ...bearer, "content-type": "multipart/mixed; boundary=b" };
    const inside = await ask("blob", "POST", "/walk?restype=container&comp=batch", batch, part);
    assert.match(inside.text, /HTTP\/1\.1 403/, "nor inside of a batch");
    const source = { ...bearer, "x-ms-requires-sync": "true", "x-ms-copy-source": `${stamp().endpoints.blob}/walk/b?${sas}` };
    assert.match(await code("blob", "PUT", "/walk/by-proxy", source), /^403 CannotVerifyCopySource/, "nor of the source of a copy");
  });

  test("signatures and pop receipts are in no line of any log, and a copy tells its source without them, however the name is written", async () => {
    const sas = inContainer("r");
    const signature = new URLSearchParams(sas).get("sig") ?? "";
    const secrets = [signature, encodeURIComponent(signature), "0123456789abcdef"];
    for (const name of ["sig", "SIG", "s%69g", "%73ig"]) {
      const written = sas.replace(/(^|&)sig=/, `$1${name}=`);
      assert.equal(await code("blob", "GET", withQuery("/walk/b", written)), "200", name);
      await code("blob", "GET", withQuery("/walk/b", written.replace("sp=r", "sp=w")));
      const copy = { "x-ms-copy-source": `${stamp().endpoints.blob}/walk/b?${written}` };
      assert.equal(await code("blob", "PUT", withQuery("/walk/told", inContainer("w")), copy), "202", name);
      const told = (await ask("blob", "HEAD", withQuery("/walk/told", sas))).headers["x-ms-copy-source"] as string;
      assert.equal(told, `${stamp().endpoints.blob}/walk/b`, name);
    }
    const receipt = "pop%72eceipt=0123456789abcdef&visibilitytimeout=0";
    await code("queue", "PUT", withQuery(`/walk/messages/1?${receipt}`, serviceSas(signed("queue"), "walk", "u")));
    assert.ok(
      logged.some((line) => line.includes("/walk/b?") && line.includes("REDACTED")),
      "requests are logged",
    );
    for (const line of logged) for (const secret of secrets) assert.ok(!line.includes(secret), line);
  });

  test("Get Account Information and preflights: any letter is enough for the one, nothing is asked for the other", async () => {
    const preflight = { origin: "https://elsewhere.example", "access-control-request-method": "PUT" };
    for (const service of services) assert.equal(await code(service, "OPTIONS", "/walk", preflight), "403 CorsPreflightFailure");
  });
});

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type OtherRequest, otherRequests, otherRequestTitle, otherSuffixes, refuseOtherService } from "./other-services.ts";
import { parseTarget, type Target } from "./target.ts";

function targetOf(path: string): Target {
  const target = parseTarget(`/account${path}`, "", { hostSuffixes: [] });
  assert.ok(target.ok);
  return target.value;
}

function asked({ level, query }: OtherRequest): Target {
  const path = { account: "/", root: "/f", path: "/f/p" }[level];
  return targetOf(`${path}?${query.map(([name, value]) => `${name}=${value === "*" ? "x" : value}`).join("&")}`);
}

const headersOf = ({ header }: OtherRequest) => (header === undefined ? {} : { [header]: "x" });
const nameOf = ({ method, level, title }: OtherRequest): string => `${method} ${level} ${title}`;

describe("requests of Data Lake Storage and Azure Files", () => {
  test("each is named at a host of its service", () => {
    for (const row of otherRequests()) {
      const title = otherRequestTitle(row.method, asked(row), headersOf(row), row.service);
      assert.equal(title?.replace(/ \(.*/, ""), row.title, nameOf(row));
    }
  });

  test("at the Blob service's host each is named, but for those that are the same request there", () => {
    const same = otherRequests().filter((row) => otherRequestTitle(row.method, asked(row), headersOf(row)) === undefined);
    assert.deepEqual(same.map(nameOf), [
      "GET root List Deleted Paths",
      "PUT path Undelete Path",
      "PUT path Set Path Expiry",
      "HEAD path Get Path Properties",
      "DELETE path Delete Path",
      "GET path Read Path",
      "GET account List Shares",
      "GET account Get File Service Properties",
      "PUT account Set File Service Properties",
      "POST account Get User Delegation Key",
      "PUT path Set File Properties",
      "GET path Get File Metadata",
      "HEAD path Get File Metadata",
      "PUT path Set File Metadata",
      "PUT path Lease File",
      "PUT path Abort Copy File",
      "PUT path Copy File",
      "PUT path Create File",
      "GET path Get File",
      "HEAD path Get File Properties",
      "DELETE path Delete File",
    ]);
  });

  test("operations on access control lists are refused as of a flat account, every other one with its name", () => {
    const flat = new Set<string>();
    for (const row of otherRequests()) {
      const error = refuseOtherService(row.method, asked(row), headersOf(row), row.service);
      assert.deepEqual([error?.status, error?.code === "NotImplemented"], [row.refusedWith, row.refusedWith === 501], nameOf(row));
      if (error?.code === "HierarchicalNamespaceNotEnabled") flat.add(nameOf(row));
    }
    const lists = ["Set Access Control Recursively", "Set Access Control"].flatMap((title) => [
      `PATCH root ${title}`,
      `PATCH path ${title}`,
    ]);
    assert.deepEqual([...flat].sort(), [...lists, "HEAD root Get Access Control", "HEAD path Get Access Control"].sort());
  });

  test("a header of Azure Files names the operation that is otherwise the same", () => {
    const named = (method: string, path: string, header: string) => otherRequestTitle(method, targetOf(path), { [header]: "x" });
    assert.equal(named("PUT", "/s/f", "x-ms-type"), "Create File (Azure Files)");
    assert.equal(named("PUT", "/s/f?comp=properties", "x-ms-file-attributes"), "Set File Properties (Azure Files)");
    assert.equal(named("GET", "/s/f?sharesnapshot=2020", "x-ms-date"), "Get File (Azure Files)");
    assert.equal(named("PUT", "/c/b", "x-ms-file-request-intent"), undefined);
    assert.equal(named("PUT", "/c/b", "x-ms-undelete-source"), "Data Lake Storage");
  });

  test("parameters of nobody's are no other service's", () => {
    for (const path of [
      "/c/b?action=download",
      "/c/b?resource=x",
      "/c/b?recursive=true",
      "/c?restype=container&comp=list&recursive=true",
    ]) {
      assert.equal(otherRequestTitle("GET", targetOf(path), {}), undefined, path);
    }
  });

  test("their hosts are beside ours", () => {
    assert.deepEqual(otherSuffixes(["blob.localhost", "storage.example", "blob.core.example"], "dfs"), [
      "dfs.localhost",
      "dfs.core.example",
    ]);
  });
});

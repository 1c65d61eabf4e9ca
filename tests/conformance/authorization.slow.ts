/**
 * Every operation by every letter of every kind of SAS, by every role, and by nobody, against a running stamp. What is expected stands in
 * authorization-table.ts, from the reference. Requests are made so that they change nothing when they are let in: they name what is not
 * there, or lack what they need.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { blobOperationNames, queueOperationNames, tableOperationNames } from "@stamp/azure-rest";
import { authorizationStamp, groupOf, letters, noAuthentication, noPermission, roles, services, version } from "./authorization-stamp.ts";
import { expectedRows } from "./authorization-table.ts";
import { bearerHeaders, type DelegationKey } from "./delegation.ts";
import { accountSas, delegationSas, type SasFields, serviceSas } from "./sas-by-hand.ts";
import type { Clients } from "./target.ts";

suite("authorization: operation by letter by kind of SAS by role, and nobody", () => {
  const { asked, clients, expectGood, expectLetIn, heldBy, inParallel, isEnough, keys, namedBy, noneWrong, requestOf, signed } =
    authorizationStamp();

  test("the expected table has a row of every operation", () => {
    const names = { blob: blobOperationNames, queue: queueOperationNames, table: tableOperationNames };
    const plain = (text: string): string => text.replace(/[ ,(].*$/, "").replace(/^(Get|Set)(Queue|Table|Blob)Service/, "$1Service");
    const short = (name: string): string =>
      plain(name)
        .replace(/^(Set|Delete)BlobImmutabilityPolicy$/, "$1ImmutabilityPolicy")
        .replace(/^SetBlobLegalHold$/, "SetLegalHold");
    for (const service of services) {
      const rows = new Set(expectedRows[service].map(({ operation }) => plain(operation)));
      assert.deepEqual([...new Set(names[service].map(short))].sort(), [...rows].sort(), service);
    }
  });

  for (const service of services) {
    test(`${service}: account SAS, every operation by every letter, resource type and service`, async () => {
      await inParallel(expectedRows[service], async (row) => {
        const with_ = async (ss: string, srt: string, sp: string): Promise<string> =>
          asked(service, row, accountSas(signed(service), ss, srt, sp));
        for (const held of heldBy(row.account)) {
          expectLetIn(`${row.operation}, account SAS ${held}`, await with_("bqt", "sco", held), isEnough(row.account, held));
        }
        for (const type of "sco") {
          const letIn = row.resourceTypes.includes(type) && row.account !== undefined;
          const refusal = row.resourceTypes.includes(type) ? noPermission : "403 AuthorizationResourceTypeMismatch";
          expectLetIn(`${row.operation}, account SAS srt=${type}`, await with_("bqt", type, letters), letIn, refusal);
        }
        const others = "bqt".replace(service[0] as string, "");
        expectLetIn(
          `${row.operation}, account SAS ss=${others}`,
          await with_(others, "sco", letters),
          false,
          "403 AuthorizationServiceMismatch",
        );
      });
      noneWrong();
    });

    test(`${service}: service and user delegation SAS, every operation by every letter`, async () => {
      await inParallel(expectedRows[service], async (row) => {
        const request = requestOf(row, "walk");
        const named = namedBy(service, request);
        const kinds = service !== "blob" ? [""] : named?.blob ? ["c", "b"] : ["c"];
        for (const sr of kinds) {
          const name = named === undefined ? "walk" : sr === "b" ? `${named.name}/${named.blob}` : named.name;
          const batch = row.operation === "EntityGroupTransaction";
          const of: SasFields = service === "blob" ? { sr } : service === "table" ? { tn: name } : {};
          for (const [kind, groups, sas] of [
            ["service", row.service, (held: string) => serviceSas(signed(service), name, held, of)],
            [
              "delegation",
              row.delegation,
              (held: string) => delegationSas(signed(service), keys.get(`${service} own`) as DelegationKey, name, held, of),
            ],
          ] as const) {
            const held = named === undefined && !batch ? [letters] : heldBy(groups, sr === "b");
            // What a SAS of a container, queue or table can't name: the signature is of something else.
            const refusal = named === undefined && !batch ? "403 AuthenticationFailed" : noPermission;
            for (const sp of held) {
              expectLetIn(`${row.operation}, ${kind} SAS ${sr} ${sp}`, await asked(service, row, sas(sp)), isEnough(groups, sp), refusal);
            }
          }
        }
      });
      noneWrong();
    });

    test(`${service}: every operation by every role, and by what a role hands on`, async () => {
      const tokens = new Map<string, Record<string, string>>();
      for (const role of roles) tokens.set(role, await bearerHeaders(clients.get(service) as Clients, groupOf[role]));
      await inParallel(expectedRows[service], async (row) => {
        for (const role of roles) {
          const enough = roles.indexOf(role) >= roles.indexOf(row.role);
          const told = await asked(service, row, "", { ...tokens.get(role), "x-ms-version": version });
          expectLetIn(`${row.operation}, bearer of ${role}`, told, enough);
          const named = namedBy(service, requestOf(row, "walk"));
          if (named === undefined || row.delegation === undefined) continue;
          const of: SasFields = service === "blob" ? { sr: "c" } : service === "table" ? { tn: named.name } : {};
          const key = keys.get(`${service} ${role}`) as DelegationKey;
          const handedOn = await asked(service, row, delegationSas(signed(service), key, named.name, letters, of));
          expectLetIn(`${row.operation}, SAS by a key of ${role}`, handedOn, enough);
        }
      });
      noneWrong();
    });

    test(`${service}: every operation by nobody, where the container is private, public for its blobs, public altogether`, async () => {
      await inParallel(expectedRows[service], async (row) => {
        for (const [container, level] of [
          ["walk", 0],
          ["walkblob", 1],
          ["walkcontainer", 2],
        ] as const) {
          if (service !== "blob" && level > 0) continue;
          const told = await asked(service, row, "", {}, container);
          const what = `${row.operation}, nobody, ${container}`;
          const needed = { none: 3, blob: 1, container: 2 }[row.anonymous];
          if (needed === 3) expectLetIn(what, told, false, noAuthentication);
          else expectLetIn(what, told, level >= needed, "404 ResourceNotFound");
          if (needed <= level) expectGood(what, told);
        }
      });
      noneWrong();
    });
  }
});

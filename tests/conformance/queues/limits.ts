/** Limits and refusals: a table of requests as given, with the status and code of the answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { queueRequests } from "@stamp/azure-rest";
import { type QueueClients, refusal } from "./target.ts";

const body = (text: string): string => `<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`;
const week = 7 * 24 * 3600;

/** [method, path behind the queue, body, status, code] */
const cases: readonly (readonly [string, string, string | undefined, number, string])[] = [
  ["GET", "/messages?numofmessages=0", undefined, 400, "OutOfRangeQueryParameterValue"],
  ["GET", "/messages?numofmessages=33", undefined, 400, "OutOfRangeQueryParameterValue"],
  ["GET", "/messages?numofmessages=x", undefined, 400, "InvalidQueryParameterValue"],
  ["GET", "/messages?peekonly=true&numofmessages=33", undefined, 400, "OutOfRangeQueryParameterValue"],
  ["GET", "/messages?peekonly=", undefined, 400, "InvalidQueryParameterValue"],
  ["GET", "/messages?numofmessages=&visibilitytimeout=&timeout=", undefined, 200, ""],
  ["POST", "/messages?messagettl=&visibilitytimeout=", body("x"), 201, ""],
  ["DELETE", "/messages/00000000-0000-8000-8000-000000000000?popreceipt=", undefined, 400, "MissingRequiredQueryParameter"],
  ["GET", "/messages?peekonly=maybe", undefined, 400, "InvalidQueryParameterValue"],
  ["GET", "/messages?visibilitytimeout=0", undefined, 400, "OutOfRangeQueryParameterValue"],
  ["GET", `/messages?visibilitytimeout=${week + 1}`, undefined, 400, "OutOfRangeQueryParameterValue"],
  ["POST", `/messages?visibilitytimeout=${week + 1}&messagettl=-1`, body("x"), 400, "OutOfRangeQueryParameterValue"],
  ["POST", "/messages?visibilitytimeout=-1", body("x"), 400, "OutOfRangeQueryParameterValue"],
  ["POST", "/messages?visibilitytimeout=10&messagettl=10", body("x"), 400, "OutOfRangeQueryParameterValue"],
  ["POST", "/messages?messagettl=0", body("x"), 400, "OutOfRangeQueryParameterValue"],
  ["POST", "/messages?messagettl=-2", body("x"), 400, "OutOfRangeQueryParameterValue"],
  ["POST", "/messages?messagettl=99999999999", body("x"), 400, "OutOfRangeQueryParameterValue"],
  ["POST", "/messages", "", 400, "InvalidXmlDocument"],
  ["POST", "/messages", "no xml", 400, "InvalidXmlDocument"],
  ["POST", "/messages", "<Other/>", 400, "InvalidXmlDocument"],
  ["POST", "/messages", "<QueueMessage/>", 400, "MissingRequiredXmlNode"],
  ["POST", "/messages", body("<b>x</b>"), 400, "UnsupportedXmlNode"],
  ["POST", "/messages", body("&unknown;"), 400, "InvalidXmlDocument"],
  ["POST", "/messages", body("&#1;"), 400, "InvalidXmlDocument"],
  ["POST", "/messages", body("\u0001"), 400, "InvalidXmlDocument"],
  ["POST", "/messages", `<!DOCTYPE a [<!ENTITY b "c">]>${body("&b;")}`, 400, "InvalidXmlDocument"],
  ["POST", "/messages", body("x".repeat(65_537)), 413, "RequestBodyTooLarge"],
  ["POST", "/messages", body("&#x41;".repeat(65_536)), 201, ""],
  ["POST", "/messages", body("&#x41;".repeat(65_537)), 413, "RequestBodyTooLarge"],
  ["POST", "/messages", body("é".repeat(32_768)), 201, ""],
  ["PUT", "/messages/00000000-0000-8000-8000-000000000000?popreceipt=x", "", 400, "MissingRequiredQueryParameter"],
  ["PUT", "/messages/00000000-0000-8000-8000-000000000000?visibilitytimeout=0", "", 400, "MissingRequiredQueryParameter"],
  [
    "PUT",
    `/messages/00000000-0000-8000-8000-000000000000?visibilitytimeout=${week + 1}&popreceipt=x`,
    "",
    400,
    "OutOfRangeQueryParameterValue",
  ],
  ["PUT", "/messages/00000000-0000-8000-8000-000000000000?visibilitytimeout=0&popreceipt=x", "", 400, "InvalidQueryParameterValue"],
  ["DELETE", "/messages/00000000-0000-8000-8000-000000000000?popreceipt=AgAAAAMAAAA", undefined, 400, "InvalidQueryParameterValue"],
  ["DELETE", "/messages/00000000-0000-8000-8000-000000000000", undefined, 400, "MissingRequiredQueryParameter"],
  ["DELETE", `/messages/not-a-message?popreceipt=${"0".repeat(28)}`, undefined, 404, "MessageNotFound"],
  ["GET", "/messages/x", undefined, 405, "UnsupportedHttpVerb"],
  ["PATCH", "/messages", undefined, 405, "UnsupportedHttpVerb"],
  ["GET", "/other", undefined, 400, "InvalidUri"],
  ["GET", "/messages/a/b", undefined, 400, "InvalidUri"],
  ["GET", "?comp=nothing", undefined, 400, "InvalidQueryParameterValue"],
  ["GET", "", undefined, 405, "UnsupportedHttpVerb"],
];

export function limitSuite(clients: () => QueueClients): void {
  test("every limit has its refusal", async () => {
    const queue = await clients().queue();
    for (const [method, path, text, status, code] of cases) {
      const answer = await clients().raw(method, `/${queue.name}${path}`, text === undefined ? {} : { body: text });
      const seen = [answer.status, answer.headers.get("x-ms-error-code") ?? ""];
      assert.deepEqual(seen, [status, code], `${method} ${path} ${text?.slice(0, 60) ?? ""}`);
      const xml = await answer.text();
      if (status >= 400) assert.match(xml, new RegExp(`<Error><Code>${code}</Code><Message>`));
    }
  });

  test("no operation has conditions: they are refused by name, never ignored", async () => {
    const queue = await clients().queue();
    for (const { resource, request, served } of queueRequests()) {
      if (!served) continue;
      const [method = "", ...query] = request.split(" ");
      const path = { service: "", queue: `/${queue.name}`, messages: `/${queue.name}/messages`, message: `/${queue.name}/messages/x` }[
        resource
      ];
      for (const name of ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"]) {
        const answer = await clients().raw(method, `${path}${query.length === 0 ? "" : `?${query.join("&")}`}`, {
          headers: { [name]: "*" },
          ...(method === "PUT" || method === "POST" ? { body: "" } : {}),
        });
        const told = [answer.status, answer.headers.get("x-ms-error-code")];
        assert.deepEqual(told, [400, "ConditionHeadersNotSupported"], `${resource} ${request} ${name}`);
      }
    }
    assert.equal(await queue.exists(), true);
  });

  test("names of queues", async () => {
    const create = (name: string) => clients().raw("PUT", `/${name}`);
    for (const name of ["Upper", "a--b", "-a", "a-", "a_b", "a.b", "%C3%A9tage"]) {
      const answer = await create(name);
      assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [400, "InvalidResourceName"], name);
    }
    for (const name of ["ab", "a".repeat(64)]) {
      const answer = await create(name);
      assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [400, "OutOfRangeInput"], name);
    }
    assert.ok([201, 204].includes((await create(`a${"0".repeat(62)}`)).status));
  });

  test("before 2017-07-29 a message lives a week at most", async () => {
    const queue = await clients().queue();
    const put = (version: string, ttl: number) =>
      clients().raw("POST", `/${queue.name}/messages?messagettl=${ttl}`, { body: body("x"), headers: { "x-ms-version": version } });
    assert.equal((await put("2016-05-31", week + 1)).status, 400);
    assert.equal((await put("2016-05-31", -1)).status, 400);
    assert.equal((await put("2016-05-31", week)).status, 201);
    assert.equal((await put("2017-07-29", -1)).status, 201);
  });

  test("nobody without authorization, and no other key", async () => {
    const queue = await clients().queue();
    const none = await clients().raw("GET", `/${queue.name}/messages`, { sign: false });
    assert.deepEqual([none.status, none.headers.get("x-ms-error-code")], [401, "NoAuthenticationInformation"]);
    const wrong = await clients().raw("GET", `/${queue.name}/messages`, {
      sign: false,
      headers: { authorization: `SharedKey ${clients().target.accountName}:AAAA`, "x-ms-date": new Date().toUTCString() },
    });
    assert.equal(wrong.status, 403);
  });

  test("the answer names the request and the service; a body of 32 large messages comes whole", async () => {
    const queue = await clients().queue();
    const answer = await clients().raw("GET", `/${queue.name}/messages`, { headers: { "x-ms-client-request-id": "mine" } });
    assert.equal(answer.headers.get("x-ms-client-request-id"), "mine");
    assert.match(answer.headers.get("x-ms-request-id") ?? "", /^[0-9a-f-]{36}$/);
    assert.match(answer.headers.get("server") ?? "", /^Stamp-Queue/);
    assert.equal(await answer.text(), '<?xml version="1.0" encoding="utf-8"?><QueueMessagesList></QueueMessagesList>');
    const large = "é".repeat(32_768);
    for (let i = 0; i < 32; i++) await queue.sendMessage(large);
    const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32 });
    assert.equal(receivedMessageItems.filter(({ messageText }) => messageText === large).length, 32);
  });

  test("the SDK sees the service's codes", async () => {
    const queue = await clients().queue();
    assert.equal(await refusal(queue.sendMessage("x".repeat(65_537))), "413 RequestBodyTooLarge");
    assert.equal(await refusal(queue.receiveMessages({ numberOfMessages: 100 })), "400 OutOfRangeQueryParameterValue");
  });
}

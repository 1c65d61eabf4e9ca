/** What SDKs hide: how names are encoded, how headers are written, how bodies arrive, where the account stands. Over raw connections. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type RawRequest, rawExchange } from "./raw-connection.ts";
import type { Clients } from "./target.ts";

const blockBlob = { "x-ms-blob-type": "BlockBlob" } as const;
const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? 0);
const bodyOf = (answer: string): string => answer.slice(answer.indexOf("\r\n\r\n") + 4);
const codeOf = (answer: string): string => /\r\nx-ms-error-code: (\w+)\r\n/i.exec(answer)?.[1] ?? "";

export function odditySuite(clients: () => Clients): void {
  describe("raw HTTP", () => {
    const put = async (path: string, body: string): Promise<string> => {
      const answer = await rawExchange(clients(), { method: "PUT", path, headers: blockBlob, body });
      return `${statusOf(answer)} ${codeOf(answer)}`.trim();
    };
    const get = async (path: string): Promise<string> => {
      const answer = await clients().raw("GET", path);
      return answer.ok ? answer.text() : `${answer.status} ${answer.headers.get("x-ms-error-code")}`;
    };
    async function listed(container: string): Promise<string[]> {
      const names: string[] = [];
      for await (const { name } of clients().service.getContainerClient(container).listBlobsFlat()) names.push(name);
      return names.sort();
    }

    test("a name is what its path decodes to, once: an encoded slash is a slash, an encoded percent sign a percent sign", async () => {
      const { containerName } = await clients().container();
      const rows = [
        ["a%2Fb", "a/b"],
        ["%61%2fc", "a/c"],
        ["double%252Fencoded", "double%2Fencoded"],
        ["plus+and%2Bplus", "plus+and+plus"],
        ["space%20d", "space d"],
        ["%C3%BCml%C3%A4ut", "ümläut"],
        ["%F0%9F%98%80", "😀"],
        ["e%CC%81", "e\u0301"],
        ["%C3%A9", "é"],
        ["question%3Fmark%23hash", "question?mark#hash"],
        ["semi;colon,comma'()!*~", "semi;colon,comma'()!*~"],
        [".leading/..dots/in.side", ".leading/..dots/in.side"],
        ["slash/", "slash/"],
        ["two//slashes", "two//slashes"],
      ] as const;
      for (const [path, name] of rows) assert.equal(await put(`/${containerName}/${path}`, name), "201", path);
      assert.deepEqual(await listed(containerName), rows.map(([, name]) => name).sort());
      for (const [path, name] of rows) assert.equal(await get(`/${containerName}/${encodeURIComponent(name)}`), name, path);
    });

    test("U+FEFF at the start of a name belongs to it, also where a page ends", async () => {
      const { containerName } = await clients().container();
      const names = ["\ufefffoo", "\ufeff", "plain", "\ufeffzoo/\ufeffa", "\u{10ffff}last"];
      for (const name of names) assert.equal(await put(`/${containerName}/${encodeURIComponent(name)}`, name), "201");
      const read: string[] = [];
      let marker = "";
      do {
        const answer = await clients().raw("GET", `/${containerName}?restype=container&comp=list&maxresults=1&marker=${marker}`);
        const page = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await answer.arrayBuffer());
        read.push(...[...page.matchAll(/<Name>([^<]*)<\/Name>/g)].map(([, name = ""]) => name));
        marker = encodeURIComponent(/<NextMarker>([^<]*)<\/NextMarker>/.exec(page)?.[1] ?? "");
      } while (marker !== "" && read.length <= names.length);
      assert.deepEqual(read.sort(), names.sort());
      const answer = await clients().raw("GET", `/${containerName}?restype=container&comp=list&delimiter=/&prefix=%EF%BB%BFz`);
      assert.ok((await answer.text()).includes("<BlobPrefix><Name>\ufeffzoo/</Name></BlobPrefix>"));
    });

    test("names have 1,024 characters at most, however many bytes they take in the path", async () => {
      const { containerName } = await clients().container();
      for (const character of ["n", "é", "日"]) {
        const longest = encodeURIComponent(character.repeat(1024));
        assert.equal(await put(`/${containerName}/${longest}`, character), "201");
        assert.equal(await get(`/${containerName}/${longest}`), character);
        assert.match(await put(`/${containerName}/${longest}${encodeURIComponent(character)}`, ""), /^400 /);
      }
      assert.equal((await listed(containerName)).length, 3);
    });

    test("$root: with its name or without, encoded or not; without it there is one segment only", async () => {
      const root = clients().service.getContainerClient("$root");
      await root.createIfNotExists();
      assert.equal(await put("/$root/in-root.txt", "1"), "201");
      assert.equal(await put("/also.in%20root", "2"), "201");
      for (const path of ["/in-root.txt", "/$root/in-root.txt", "/%24root/in-root.txt"]) assert.equal(await get(path), "1", path);
      assert.equal(await get("/$root/also.in%20root"), "2");
      assert.match(await get("/in-root.txt/more"), /^40[04] /);
      await root.delete();
    });

    test("headers are known in every casing; names of metadata keep theirs", async () => {
      const { containerName } = await clients().container();
      for (const [name, written] of [
        ["upper", (header: string) => header.toUpperCase()],
        ["title", (header: string) => header.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())],
        ["mixed", (header: string) => [...header].map((c, i) => (i % 2 === 0 ? c.toUpperCase() : c.toLowerCase())).join("")],
      ] as const) {
        const answer = await rawExchange(clients(), {
          method: "PUT",
          path: `/${containerName}/${name}`,
          headers: { ...blockBlob, "x-ms-meta-camelcase": "1", "x-ms-blob-content-type": "text/x" },
          written: (header) => (header === "x-ms-meta-camelcase" ? "x-ms-meta-camelCase" : written(header)),
          body: name,
        });
        assert.equal(statusOf(answer), 201, answer);
        const client = clients().service.getContainerClient(containerName).getBlobClient(name);
        assert.equal((await client.getProperties()).contentType, "text/x");
        const raw = await rawExchange(clients(), { method: "HEAD", path: `/${containerName}/${name}` });
        assert.match(raw, /\r\nx-ms-meta-camelCase: 1\r\n/);
      }
    });

    test("Expect: 100-continue: the body is asked for when it is wanted, and not when the request is refused", async () => {
      const { containerName } = await clients().container();
      const expecting = { method: "PUT", body: "content", waitsFor100: true } as const;
      const taken = await rawExchange(clients(), {
        ...expecting,
        path: `/${containerName}/expected`,
        headers: { ...blockBlob, expect: "100-continue" },
      });
      assert.match(taken, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
      assert.equal(await get(`/${containerName}/expected`), "content");
      const missing = await rawExchange(clients(), {
        ...expecting,
        path: "/no-such-container/expected",
        headers: { ...blockBlob, expect: "100-continue" },
      });
      assert.match(missing, /^HTTP\/1\.1 404 /);
      assert.equal(codeOf(missing), "ContainerNotFound");
      const tooLarge = await rawExchange(clients(), {
        ...expecting,
        path: `/${containerName}/large`,
        headers: { ...blockBlob, expect: "100-continue", "content-length": String(6000 * 1024 * 1024) },
      });
      assert.match(tooLarge, /^HTTP\/1\.1 413 /);
    });

    test("what the HTTP parser refuses is an answer of the service: a code, a request id, a version and a body that says why", async () => {
      const { containerName } = await clients().container();
      const path = `/${containerName}/b`;
      const rows: [Partial<RawRequest>, string][] = [
        // Within what is read, the service knows what is too long.
        [{ headers: { ...blockBlob, "x-ms-meta-a": "x".repeat(40_000) } }, "400 MetadataTooLarge"],
        [{ headers: { ...blockBlob, "x-ms-meta-a": "x".repeat(80_000) } }, "400 InvalidHeaderValue"],
        [{ path: `${path}${"b".repeat(80_000)}` }, "400 InvalidHeaderValue"],
        [{ headers: { ...blockBlob, "content-length": "3x" } }, "400 InvalidHeaderValue"],
        [{ headers: { ...blockBlob, "x-ms-meta-a b": "1" } }, "400 InvalidHeaderValue"],
        [{ headers: { ...blockBlob, expect: "cake" } }, "400 InvalidHeaderValue"],
        [{ method: "NOSUCHVERB" }, "400 InvalidHttpVerb"],
        [{ path: `${path}\x01` }, "400 RequestUrlFailedToParse"],
      ];
      for (const [request, expected] of rows) {
        const answer = await rawExchange(clients(), { method: "PUT", path, headers: blockBlob, ...request });
        const code = codeOf(answer);
        assert.equal(`${statusOf(answer)} ${code}`, expected);
        const [requestId = ""] = /(?<=\r\nx-ms-request-id: )[0-9a-f-]{36}(?=\r\n)/i.exec(answer) ?? [];
        assert.match(answer, /\r\nx-ms-version: \d{4}-\d\d-\d\d\r\n/i, expected);
        assert.match(answer, /\r\nDate: [^\r]* GMT\r\n/, expected);
        assert.match(bodyOf(answer), new RegExp(`<Error><Code>${code}</Code><Message>[^<]+\nRequestId:${requestId}\n`), expected);
      }
      assert.deepEqual(await listed(containerName), []);
    });

    test("bodies in chunks: refused with 411 where the length has to be known, whatever their chunks are", async () => {
      const { containerName } = await clients().container();
      const { service } = clients();
      await service.getContainerClient(containerName).getAppendBlobClient("log").create();
      for (const path of ["/b", "/b?comp=block&blockid=QUFB", "/log?comp=appendblock"]) {
        const body = new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode("part"));
            controller.close();
          },
        });
        const answer = await clients().raw("PUT", `/${containerName}${path}`, { headers: blockBlob, stream: body });
        assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [411, "MissingContentLengthHeader"], path);
      }
      assert.deepEqual(await listed(containerName), ["log"]);
    });

    test("an absolute-form request target is served; its authority counts, not the Host header", async () => {
      const { containerName } = await clients().container();
      const { endpoint, accountName } = clients().target;
      const { host, port } = new URL(endpoint);
      const path = `/${containerName}/a%20b`;
      const byPath = `http://${host}/${accountName}${path}`;
      const put = await rawExchange(clients(), { method: "PUT", path, headers: blockBlob, body: "x", asked: { target: byPath } });
      assert.equal(statusOf(put), 201, put);
      assert.equal(await get(path), "x");
      const named = `${accountName}.blob.localhost:${port}`;
      const byHost = { target: `HTTP://${named}${path}?timeout=5`, host: `nobody.blob.localhost:${port}` };
      const read = await rawExchange(clients(), { method: "GET", path: `${path}?timeout=5`, host: named, asked: byHost });
      assert.deepEqual([statusOf(read), bodyOf(read)], [200, "x"], read);
      const other = { target: `http://nobody.blob.localhost:${port}${path}`, host: named };
      const refused = await rawExchange(clients(), { method: "GET", path, host: named, asked: other });
      assert.match(refused, /^HTTP\/1\.1 400 .*InvalidUri/s);
      const list = { target: `http://${named}?comp=list`, host: named };
      assert.equal(statusOf(await rawExchange(clients(), { method: "GET", path: "/?comp=list", host: named, asked: list })), 200);
      for (const target of [`http://user@${named}${path}`, `ftp://${named}${path}`, `${named}${path}`]) {
        const answer = await rawExchange(clients(), { method: "GET", path, host: named, asked: { target, host: named } });
        assert.match(answer, /^HTTP\/1\.1 400 /, target);
      }
    });

    test("PUT and POST without Content-Length are 411, with 0 they are served; bodies where none belongs are read and dropped", async () => {
      const container = await clients().container();
      const path = `/${container.containerName}/b`;
      assert.equal(await put(path, "content"), "201");
      for (const query of ["?comp=metadata", "?comp=properties", "?comp=snapshot"]) {
        const send = (more: Partial<RawRequest>) => rawExchange(clients(), { method: "PUT", path: `${path}${query}`, ...more });
        const without = await send({ withoutLength: true });
        assert.equal(`${statusOf(without)} ${codeOf(without)}`, "411 MissingContentLengthHeader", query);
        for (const body of ["", "GET / HTTP/1.1\r\n\r\n"]) {
          const answer = await send({ body });
          assert.match(answer, /^HTTP\/1\.1 20[01] /, query);
          assert.equal(answer.split("HTTP/1.1 ").length, 2, "one request, one answer");
        }
      }
      const batch = await rawExchange(clients(), { method: "POST", path: "/?comp=batch", withoutLength: true });
      assert.equal(`${statusOf(batch)} ${codeOf(batch)}`, "411 MissingContentLengthHeader");
      const withSnapshots = { "x-ms-delete-snapshots": "include" };
      for (const method of ["GET", "HEAD", "DELETE"]) {
        assert.match(
          await rawExchange(clients(), { method, path: `${path}?comp=metadata`, withoutLength: true }),
          /^HTTP\/1\.1 (200|405) /,
        );
        for (const framing of [{ "transfer-encoding": "chunked" }, {}]) {
          const body =
            "transfer-encoding" in framing ? "1b\r\nDELETE / HTTP/1.1\r\nx: y\r\n\r\n\r\n0\r\n\r\n" : "DELETE / HTTP/1.1\r\nx: y\r\n\r\n";
          const withoutLength = "transfer-encoding" in framing;
          const answer = await rawExchange(clients(), { method, path, headers: { ...withSnapshots, ...framing }, body, withoutLength });
          const again = method === "DELETE" && withoutLength === false;
          assert.match(answer, again ? /^HTTP\/1\.1 404 / : /^HTTP\/1\.1 20[02] /, `${method} ${JSON.stringify(framing)}`);
          assert.equal(answer.split("HTTP/1.1 ").length, 2, "one request, one answer");
          if (method === "GET") assert.equal(bodyOf(answer), "content");
        }
      }
    });

    test("a parameter that counts stands in a query once", async () => {
      const { containerName } = await clients().container();
      const asked = async (path: string): Promise<string> => {
        const answer = await clients().raw("GET", path);
        return `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
      };
      for (const query of [
        "comp=list&comp=list",
        "comp=list&restype=container&restype=container",
        "sig=a&sig=b",
        "comp=list&Prefix=a&prefix=b",
      ])
        assert.equal(await asked(`/${containerName}?restype=container&${query}`), "400 InvalidQueryParameterValue", query);
      assert.equal(await asked(`/${containerName}?restype=container&comp=list&include=metadata&include=tags&x=1&x=2`), "200");
    });

    test("the account stands in the path or in the host's name, on one port, in any casing of the host", async () => {
      const { containerName } = await clients().container();
      const { endpoint, accountName } = clients().target;
      const { port } = new URL(endpoint);
      assert.equal(await put(`/${containerName}/b`, "by path"), "201");
      for (const host of [`${accountName}.blob.localhost:${port}`, `${accountName.toUpperCase()}.Blob.LOCALHOST`]) {
        const read = await rawExchange(clients(), { method: "GET", path: `/${containerName}/b`, host });
        assert.deepEqual([statusOf(read), bodyOf(read)], [200, "by path"], host);
        const written = await rawExchange(clients(), { method: "PUT", path: `/${containerName}/h`, host, headers: blockBlob, body: host });
        assert.equal(statusOf(written), 201, written);
        assert.equal(await get(`/${containerName}/h`), host);
      }
      const nobody = await rawExchange(clients(), { method: "GET", path: `/${containerName}/b`, host: `nobody.blob.localhost:${port}` });
      assert.match(nobody, /^HTTP\/1\.1 400 .*InvalidUri/s);
    });
  });
}

/**
 * Private endpoints without a proxy (article "Load balancing private endpoints on worker roles"): a page that tells which node it calls, with
 * a button that disables the node.
 *
 *   node examples/private-endpoints.ts [--port 8080] [--seconds 600]
 *
 * Three nodes listen on loopback. Open the page, disable its node for ten seconds, reload: another one serves; later the first one again.
 */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Availability, EndpointBalancer, eventLoopDelay } from "@stamp/endpoints";
import { option } from "./account.ts";

const listen = (handler: RequestListener, port = 0): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer(handler).listen(port, "127.0.0.1", () => resolve(server));
  });
const addressOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

/** A worker with a private endpoint: says whether it is available, serves, and can be disabled for a time. */
function node(name: string): Promise<Server> {
  const availability = new Availability({ criteria: [eventLoopDelay({ unavailableAbove: 200 })] });
  return listen((request, response) => {
    if (request.url === "/available") response.statusCode = availability.answer().available ? 200 : 503;
    else if (request.url?.startsWith("/disable/")) availability.disable(Number(request.url.slice("/disable/".length)));
    response.end(request.url === "/work" ? `work of ${name}` : availability.answer().reason);
  });
}

const nodes = await Promise.all(["node 0", "node 1", "node 2"].map(node));
const balancer = new EndpointBalancer({
  nodes: nodes.map(addressOf),
  ordinal: option("--ordinal", 1),
  cacheMs: 1_000,
  isAvailable: async (address, signal) => (await fetch(`${address}/available`, { signal })).ok,
});

const page = await listen(
  async (request, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    if (request.method === "POST") {
      const address = balancer.current() ?? balancer.nodes[0];
      await fetch(`${address}/disable/10000`);
      if (address !== undefined) balancer.disableNode(address, 0);
      response.writeHead(303, { location: "/" }).end();
      return;
    }
    try {
      const answer = await balancer.call(
        async (address) => `${await (await fetch(`${address}/work`)).text()} at ${address}`,
        (error) => error instanceof TypeError,
      );
      response.end(html(`<p id="node">This page is served by the ${answer}</p>`));
    } catch (error) {
      response.statusCode = 503;
      response.end(html(`<p id="node">${error instanceof Error ? error.message : error}</p>`));
    }
  },
  option("--port", 8080),
);

function html(body: string): string {
  const rows = Object.entries(balancer.counters().nodes).map(
    ([name, { given, yes, no, errors, timeouts }]) => `<tr><td>${name}<td>${given}<td>${yes}<td>${no}<td>${errors + timeouts}`,
  );
  return `<!doctype html><html lang="en"><title>Private endpoints</title><style>body{font:16px system-ui;margin:3em}td,th{padding:.3em 1em;
text-align:right}</style><h1>Private endpoints</h1>${body}<form method="post"><button id="disable">Disable this node for 10 s</button></form>
<table><tr><th>node<th>calls<th>said yes<th>said no<th>failed${rows.join("")}</table></html>`;
}

console.log(`open ${addressOf(page)} in a browser; Ctrl-C ends`);
setTimeout(() => process.exit(0), option("--seconds", 600) * 1000);

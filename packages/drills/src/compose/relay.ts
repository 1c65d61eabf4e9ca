/**
 * Runs in a container on the network of the stamp, while a drill runs beside it: each given port of this container is a way to one process.
 * Containers have no address that every machine with Docker can reach, published ports have. The processes take nothing from a caller
 * without the secret of the stamp, over this way as over any other.
 *
 * It ends when its standard input does.
 *
 *   node relay.ts 20000=lock-service-1:11100 20001=extent-node-1:11100 …
 */
import { connect, createServer, type Socket } from "node:net";

for (const way of process.argv.slice(2)) {
  const [port = "", target = ""] = way.split("=");
  const [host = "", targetPort = ""] = target.split(":");
  createServer((caller) => {
    const called = connect({ host, port: Number(targetPort) });
    join(caller, called);
    join(called, caller);
  }).listen(Number(port));
}
// The drill has ended, or a person stops the container: connections are not waited for.
process.stdin.on("end", () => process.exit(0)).resume();
process.on("SIGTERM", () => process.exit(0));

/** Passes bytes between two sockets; when one is lost, the other is ended. */
function join(from: Socket, to: Socket): void {
  from.setNoDelay(true);
  from.on("error", () => to.destroy());
  from.on("close", () => to.destroy());
  from.pipe(to);
}

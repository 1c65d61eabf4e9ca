/**
 * Health check of the image: exit code 0 if the process of this container is ready. In a container with a whole stamp, the supervisor says
 * whether all processes are.
 */
import { connect } from "node:net";
import { json } from "node:stream/consumers";

const { STAMP_SERVICE, STAMP_HTTP = "0.0.0.0:11200", STAMP_DATA_DIR = "/data" } = process.env;

async function supervisorSays() {
  const socket = connect(`${STAMP_DATA_DIR}/run/control.sock`);
  socket.end('{"do":"status"}\n');
  return (await json(socket)).status.ready;
}

async function processSays() {
  const { ok } = await fetch(`http://127.0.0.1:${STAMP_HTTP.slice(STAMP_HTTP.lastIndexOf(":") + 1)}/ready`);
  return ok;
}

const ready = await (STAMP_SERVICE ? processSays() : supervisorSays()).catch(() => false);
process.exit(ready ? 0 : 1);

/** Credentials of grpc-js. They are made here and nowhere else. */
import { ChannelCredentials, type ChannelOptions, logVerbosity, ServerCredentials, setLogVerbosity } from "@grpc/grpc-js";
import { checkServer, type PeerTls } from "../credentials/peer-tls.ts";

// Errors that grpc-js would print come back as failures and are reported by the caller.
setLogVerbosity(logVerbosity.NONE);

/** A certificate names a process, not a host: grpc-js needs some host name all the same, and sends it as SNI. */
const anyHost = "stamp.internal";

export const secured = (options: ChannelOptions, tls: PeerTls | undefined): ChannelOptions =>
  tls === undefined ? options : { ...options, "grpc.ssl_target_name_override": anyHost, "grpc.default_authority": anyHost };

export const clientCredentials = (tls: PeerTls | undefined): ChannelCredentials =>
  tls === undefined
    ? ChannelCredentials.createInsecure()
    : ChannelCredentials.createFromSecureContext(tls.context, { checkServerIdentity: checkServer(tls) });
/** Returns credentials without TLS, which is taken off before (`door.ts`). */
export const serverCredentials = (): ServerCredentials => ServerCredentials.createInsecure();

/** True if only this machine can connect to `listen`. A name without a port is an address inside the process. */
export function isLoopback(listen: string): boolean {
  const colon = listen.lastIndexOf(":");
  if (colon < 0) return true;
  const host = listen
    .slice(0, colon)
    .replace(/^\[|\]$/g, "")
    .toLowerCase();
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

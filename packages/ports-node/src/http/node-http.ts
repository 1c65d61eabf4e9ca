/**
 * Node's HTTP. An `import` of `node:http` reads every export of it, also those that load Node's own fetch (undici): 30 ms of processor time at the
 * start of a process and 17 MB of its memory, for code that nothing here uses. So it is asked for by name.
 */
export const http: typeof import("node:http") = process.getBuiltinModule("node:http");

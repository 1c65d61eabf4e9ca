/**
 * The files of the console's page, bundled when the console starts: esbuild is what the processes are bundled with, too. No file names
 * another host, and the page has no script or style inside its HTML.
 */
import { brotliCompressSync, constants } from "node:zlib";
import { consolePage } from "@stamp/cluster";
import { CommandError } from "../exit.ts";

export interface PageFile {
  readonly type: string;
  readonly plain: Uint8Array;
  readonly compressed: Uint8Array;
}

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Stamp console</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/main.css">
</head>
<body>
<div id="page"></div>
<noscript>The console needs JavaScript. Without it: ./stamp status, ./stamp health</noscript>
<script type="module" src="/main.js"></script>
</body>
</html>
`;

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#3157d5"/>
<path d="M8 10h16M8 16h16M8 22h10" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>
`;

/** Bundles the page. Returns its files by path. Throws CommandError if it can't be bundled. */
export async function pageFiles(root: string): Promise<ReadonlyMap<string, PageFile>> {
  const built = await bundled(root);
  return new Map([
    ["/", file("text/html; charset=utf-8", Buffer.from(html))],
    ["/icon.svg", file("image/svg+xml", Buffer.from(icon))],
    ...built.map(({ name, contents }): [string, PageFile] =>
      name.endsWith(".css") ? ["/main.css", file("text/css; charset=utf-8", contents)] : ["/main.js", file("text/javascript", contents)],
    ),
  ]);
}

async function bundled(root: string): ReturnType<typeof consolePage> {
  try {
    return await consolePage(root);
  } catch (error) {
    throw new CommandError(
      `the page of the console can't be bundled: ${(error as Error).message.split("\n")[0]}. Install what the repository needs: ./stamp pnpm install`,
    );
  }
}

const file = (type: string, plain: Uint8Array): PageFile => ({
  type,
  plain,
  compressed: brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
});

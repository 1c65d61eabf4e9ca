/** Writes `src/kernel-binary.ts`: node packages/erasure/kernel/build.ts. A test makes sure that the file is what this tool writes. */
import { writeFileSync } from "node:fs";
import wabt from "wabt";
import { kernelText } from "./text.ts";

export async function kernelSource(): Promise<string> {
  const tools = await wabt();
  const module = tools.parseWat("kernel.wat", kernelText(), { simd: true, relaxed_simd: true });
  const { buffer } = module.toBinary({});
  module.destroy();
  const hex = Buffer.from(buffer).toString("hex");
  return `/** The WebAssembly kernel, made by \`kernel/build.ts\` from \`kernel/text.ts\`: hex. */\nexport const kernelBinary: string =\n  "${hex}";\n`;
}

if (process.argv[1] === import.meta.filename) writeFileSync(new URL("../src/kernel-binary.ts", import.meta.url), await kernelSource());

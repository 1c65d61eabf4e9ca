/**
 * Makes the files of a release in a folder. The same sources, on the same base image, give the same bytes.
 *
 *   stamp-storage-VERSION.tgz, stamp-testcontainers-VERSION.tgz   packages for npm
 *   stamp-chart-VERSION.tgz                                        the Helm chart
 *   stamp-image-VERSION.tar                                        the image, if a Docker engine answers
 *   sbom.cdx.json, licences.txt                                    packages of others whose code all of it holds
 *   notes.md                                                       what the changelog says
 *   SHA256SUMS                                                     of all of these
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { release } from "@stamp/base";
import { makePackage } from "../package/make-package.ts";
import { packAll } from "../package/pack.ts";
import { chartArchive } from "./chart.ts";
import { timelessImage } from "./image.ts";
import { notesOf } from "./notes.ts";
import { sbomOf } from "./sbom.ts";
import { versionsIn } from "./version.ts";

export interface ReleaseOptions {
  /** Folder for the files. It is made, and must be empty. */
  readonly out: string;
  /** True to make an image, too. */
  readonly image: boolean;
  readonly tell: (line: string) => void;
}

export async function makeRelease(root: string, { out, image, tell }: ReleaseOptions): Promise<void> {
  const others = versionsIn(root).filter((each) => !each.endsWith(`: ${release}`));
  if (others.length > 0) throw new Error(`not of version ${release}: ${others.join(", ")}. Set one: ./stamp release --version ${release}`);
  mkdirSync(out, { recursive: true });
  if (readdirSync(out).length > 0) throw new Error(`${out} is not empty: name another folder by --out`);
  const write = (name: string, content: string | Buffer): void => writeFileSync(join(out, name), content);
  write("notes.md", notesOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), release));
  await packAll(root, out, () => {});
  write(`stamp-chart-${release}.tgz`, chartArchive(join(root, "deploy/helm/stamp"), "stamp"));
  const whole = mkdtempSync(join(tmpdir(), "stamp-release-"));
  try {
    // The image's form has the packages that npm installs inside.
    write("sbom.cdx.json", sbomOf("stamp-storage", release, await makePackage(root, whole, "image")));
    write("licences.txt", readFileSync(join(whole, "THIRD-PARTY-LICENCES.txt")));
  } finally {
    rmSync(whole, { recursive: true, force: true });
  }
  if (image) await saveImage(root, join(out, `stamp-image-${release}.tar`), tell);
  const sums = [];
  for (const name of readdirSync(out).sort()) sums.push(`${await digestOf(join(out, name))}  ${name}\n`);
  write("SHA256SUMS", sums.join(""));
  tell(`${out}\n${sums.join("")}`.trimEnd());
}

async function digestOf(path: string): Promise<string> {
  const digest = createHash("sha256");
  for await (const piece of createReadStream(path)) digest.update(piece as Buffer);
  return digest.digest("hex");
}

/** Builds the image and writes it as `docker load` takes it. Without an engine there is none, which is told. */
async function saveImage(root: string, path: string, tell: (line: string) => void): Promise<void> {
  const run = promisify(execFile);
  const engine = await run("docker", ["info"]).catch(() => undefined);
  if (engine === undefined) {
    tell("no image: no Docker engine answers");
    return;
  }
  const { stdout: told } = await run("git", ["log", "-1", "--format=%H %ct"], { cwd: root }).catch(() => ({ stdout: "" }));
  const [commit = "", seconds = "0"] = told.trim().split(" ");
  const tag = `stamp:${release}`;
  // The compose files take the same variable: behind a proxy with an authority of its own.
  const authority = process.env.STAMP_BUILD_CA ?? "";
  const secret = authority !== "" && existsSync(authority) ? ["--secret", `id=ca,src=${authority}`] : [];
  await run("docker", ["build", "-q", "--no-cache", "-t", tag, "--build-arg", `REVISION=${commit}`, ...secret, "."], { cwd: root });
  await run("docker", ["save", "-o", path, tag]);
  const pieces = timelessImage(readFileSync(path), Number(seconds));
  writeFileSync(path, "");
  for (const piece of pieces) appendFileSync(path, piece);
}

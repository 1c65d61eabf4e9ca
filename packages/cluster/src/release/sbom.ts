/** The bill of materials of a release, in CycloneDX: each package of others whose code the programs hold. */
import { Enums, Models, Serialize, Spec } from "@cyclonedx/cyclonedx-library";
import type { BundledPackage } from "../package/licences.ts";

/** Returns the document as JSON. It has no time and no serial number: the same packages give the same bytes. */
export function sbomOf(name: string, version: string, bundled: readonly BundledPackage[]): string {
  const bom = new Models.Bom();
  const purlOf = (of: string, at: string): string => `pkg:npm/${of.replace("@", "%40")}@${at}`;
  const purl = purlOf(name, version);
  bom.metadata.component = new Models.Component(Enums.ComponentType.Application, name, {
    version,
    purl,
    bomRef: purl,
    licenses: new Models.LicenseRepository([new Models.SpdxLicense("Apache-2.0")]),
  });
  for (const each of bundled) {
    const [group, short] = each.name.startsWith("@") ? each.name.split("/") : [undefined, each.name];
    const own = purlOf(each.name, each.version);
    // A licence in a manifest of npm is an expression of SPDX.
    const licences = new Models.LicenseRepository([new Models.LicenseExpression(each.licence)]);
    const parts = { group, version: each.version, purl: own, bomRef: own, licenses: licences };
    const component = new Models.Component(Enums.ComponentType.Library, short ?? each.name, parts);
    bom.components.add(component);
    bom.metadata.component.dependencies.add(component.bomRef);
  }
  const factory = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  return `${new Serialize.JsonSerializer(factory).serialize(bom, { sortLists: true, space: 2 })}\n`;
}

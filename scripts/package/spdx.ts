/** The software bill of materials in SPDX 2.3, made from that in CycloneDX: the same packages, with the same digests and edges. */
import type { Component, Edge } from './sbom.ts'

interface Bom {
  readonly serialNumber: string
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly Edge[]
}

/** Licences that are no identifiers of SPDX, with their texts. */
const OTHER_LICENCES: Readonly<Record<string, string>> = {
  'LicenseRef-public-domain': 'The files are in the public domain, as /usr/share/doc/tzdata/copyright states.',
}

const DOCUMENT = 'SPDXRef-DOCUMENT'

const idOf = (reference: string): string => `SPDXRef-${reference.replaceAll(/[^A-Za-z0-9.-]+/g, '-')}`

const licenceOf = ({ licenses }: Component): string =>
  licenses.map((one) => ('license' in one ? one.license.id : `(${one.expression})`)).join(' AND ')

const packageOf = (component: Component) => ({
  name: component.name,
  SPDXID: idOf(component['bom-ref']),
  versionInfo: component.version,
  downloadLocation: component.externalReferences?.[0]?.url ?? 'NOASSERTION',
  filesAnalyzed: false,
  licenseConcluded: 'NOASSERTION',
  licenseDeclared: licenceOf(component),
  copyrightText: 'NOASSERTION',
  ...(component.hashes === undefined
    ? {}
    : { checksums: component.hashes.map(({ alg, content }) => ({ algorithm: alg.replace('-', ''), checksumValue: content })) }),
  externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: component.purl }],
})

const relation = (from: string, relationshipType: string, to: string) => ({
  spdxElementId: from,
  relationshipType,
  relatedSpdxElement: to,
})

/** `at` is the time of the commit, in seconds since the epoch. */
export function spdxText(cycloneDx: string, at: number): string {
  const { serialNumber, metadata, components, dependencies } = JSON.parse(cycloneDx) as Bom
  const root = metadata.component
  const inner = components.flatMap((component) => (component.components ?? []).map((one) => ({ one, of: component })))
  const needed = new Set(dependencies.flatMap(({ dependsOn }) => dependsOn))
  const id = (component: Component): string => idOf(component['bom-ref'])
  const packages = [root, ...components, ...inner.map(({ one }) => one)].map(packageOf)
  const others = Object.entries(OTHER_LICENCES).filter(([name]) => packages.some(({ licenseDeclared }) => licenseDeclared.includes(name)))
  const document = {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: DOCUMENT,
    name: `${root.name}-${root.version}`,
    documentNamespace: `${serialNumber}/spdx`,
    creationInfo: { created: new Date(at * 1000).toISOString().replace('.000', ''), creators: [`Tool: deferd-spdx-${root.version}`] },
    packages,
    ...(others.length === 0
      ? {}
      : { hasExtractedLicensingInfos: others.map(([licenseId, extractedText]) => ({ licenseId, extractedText })) }),
    relationships: [
      relation(DOCUMENT, 'DESCRIBES', id(root)),
      ...dependencies.flatMap(({ ref, dependsOn }) => dependsOn.map((other) => relation(idOf(ref), 'DEPENDS_ON', idOf(other)))),
      ...components.filter((one) => !needed.has(one['bom-ref'])).map((one) => relation(id(root), 'CONTAINS', id(one))),
      ...inner.map(({ one, of }) => relation(id(of), 'CONTAINS', id(one))),
    ],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

/** The files of a package with its bill of materials, by their names. */
export const bomFiles = (cycloneDx: string, at: number): ReadonlyMap<string, string> =>
  new Map([
    ['sbom.cdx.json', cycloneDx],
    ['sbom.spdx.json', spdxText(cycloneDx, at)],
  ])

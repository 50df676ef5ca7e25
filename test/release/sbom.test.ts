/** The software bill of materials: complete, valid and equal in each run. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { sbomOf, sbomText, type SbomSources } from '../../scripts/package/sbom.ts'
import { spdxText } from '../../scripts/package/spdx.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'))
const lock = read('package-lock.json') as SbomSources['lock']

interface Listed {
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly 'bom-ref': string
  readonly hashes?: readonly { readonly content: string }[]
  readonly components?: readonly Listed[]
}

interface Sbom {
  readonly metadata: { readonly component: Listed }
  readonly components: readonly Listed[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

/** Identifiers of elements and licences by SPDX 2.3, clauses 3.2, 6.3 and 10.1. */
const ELEMENT = z.string().regex(/^SPDXRef-[A-Za-z0-9.-]+$/)

/** The mandatory members of SPDX 2.3, clauses 6, 7 and 11. */
const SPDX = z.strictObject({
  spdxVersion: z.literal('SPDX-2.3'),
  dataLicense: z.literal('CC0-1.0'),
  SPDXID: z.literal('SPDXRef-DOCUMENT'),
  name: z.string().min(1),
  documentNamespace: z.string().regex(/^urn:uuid:[0-9a-f-]{36}\/spdx$/),
  creationInfo: z.strictObject({
    created: z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/),
    creators: z.array(z.string().regex(/^Tool: \S+$/)).min(1),
  }),
  packages: z.array(
    z.strictObject({
      name: z.string().min(1),
      SPDXID: ELEMENT,
      versionInfo: z.string().min(1),
      downloadLocation: z.union([z.literal('NOASSERTION'), z.url()]),
      filesAnalyzed: z.literal(false),
      licenseConcluded: z.literal('NOASSERTION'),
      licenseDeclared: z.string().min(1),
      copyrightText: z.literal('NOASSERTION'),
      checksums: z
        .array(z.strictObject({ algorithm: z.enum(['SHA256', 'SHA512']), checksumValue: z.string().regex(/^[0-9a-f]+$/) }))
        .optional(),
      externalRefs: z
        .array(
          z.strictObject({
            referenceCategory: z.literal('PACKAGE-MANAGER'),
            referenceType: z.literal('purl'),
            referenceLocator: z.string().startsWith('pkg:'),
          }),
        )
        .length(1),
    }),
  ),
  hasExtractedLicensingInfos: z
    .array(z.strictObject({ licenseId: z.string().startsWith('LicenseRef-'), extractedText: z.string().min(1) }))
    .optional(),
  relationships: z.array(
    z.strictObject({
      spdxElementId: ELEMENT,
      relationshipType: z.enum(['DESCRIBES', 'DEPENDS_ON', 'CONTAINS']),
      relatedSpdxElement: ELEMENT,
    }),
  ),
})
type SpdxDocument = z.infer<typeof SPDX>

const own = sbomOf(ROOT, process.versions.node)
const sbom = JSON.parse(own) as Sbom

test('it has each package that npm installs with deferd, with its digest, and Node and SQLite', () => {
  const installed = Object.entries(lock.packages).flatMap(([folder, { dev, version }]) =>
    folder === '' || dev === true ? [] : [`${folder.replace(/.*node_modules\//, '')} ${version}`],
  )
  expect(installed).toContain('pg-types 2.2.0')
  const listed = sbom.components.filter(({ purl }) => purl.startsWith('pkg:npm/'))
  expect(listed.map(({ name, version }) => `${name} ${version}`).toSorted()).toEqual(installed.toSorted())
  for (const { name, hashes } of listed) expect(hashes?.[0]?.content, name).toMatch(/^[0-9a-f]{128}$/)
  const node = sbom.components.find(({ name }) => name === 'node')
  expect(node?.version).toBe(process.versions.node)
  expect(node?.components?.map(({ name }) => name)).toEqual(expect.arrayContaining(['openssl', 'v8', 'zlib', 'uv']))
  expect(sbom.components.find(({ name }) => name === 'better-sqlite3')?.components).toMatchObject([
    { name: 'sqlite', version: expect.stringMatching(/^3\.\d+/) },
  ])
})

test('each edge leads to a component, and each package is reached from deferd', () => {
  const known = new Set([sbom.metadata.component, ...sbom.components].map((one) => one['bom-ref']))
  const byRef = new Map(sbom.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]))
  expect([...byRef].flatMap(([ref, others]) => [ref, ...others]).filter((ref) => !known.has(ref))).toEqual([])
  const reached = new Set([sbom.metadata.component['bom-ref']])
  for (const ref of reached) for (const other of byRef.get(ref) ?? []) reached.add(other)
  expect([...byRef.keys()].filter((ref) => !reached.has(ref))).toEqual([])
})

test('it is valid CycloneDX 1.5', () => {
  const require = createRequire(import.meta.url)
  const schema = (name: string): object =>
    JSON.parse(
      readFileSync(
        require.resolve(`@cyclonedx/cyclonedx-library/package.json`).replace('package.json', `res/schema/${name}.SNAPSHOT.schema.json`),
        'utf8',
      ),
    ) as object
  const ajv = new Ajv({ strict: false, validateFormats: false })
  for (const name of ['spdx', 'jsf-0.82'])
    ajv.addSchema({ ...schema(name), $id: `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json` })
  const isValid = ajv.compile(schema('bom-1.5'))
  expect(isValid(sbom), JSON.stringify(isValid.errors)).toBe(true)
  expect(isValid({ ...sbom, components: [{ name: 'x' }] })).toBe(false)
})

test('equal sources give equal texts, other sources another serial number', () => {
  expect(sbomOf(ROOT, process.versions.node)).toBe(own)
  const manifest = read('package.json') as SbomSources['manifest']
  const serial = (version: string): unknown =>
    (JSON.parse(sbomText({ lock, manifest: { ...manifest, version }, node: null })) as { serialNumber: string }).serialNumber
  expect(serial('9.9.9')).not.toBe(serial('9.9.8'))
  expect(serial('9.9.9')).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('a Node other than that of the package is refused', () => {
  expect(() => sbomOf(ROOT, '1.2.3')).toThrow(/the package has 1\.2\.3/)
})

describe('in SPDX 2.3', () => {
  const at = 1_795_365_161
  const debian = [{ name: 'tzdata', version: '2026a', architecture: 'all', license: 'LicenseRef-public-domain', digest: 'ab'.repeat(32) }]
  const image = sbomOf(ROOT, process.versions.node, debian)
  const document = JSON.parse(spdxText(image, at)) as SpdxDocument

  test('it has what SPDX 2.3 asks of a document and of each package', () => {
    expect(SPDX.safeParse(document).error).toBeUndefined()
    expect(document.creationInfo.created).toBe('2026-11-22T16:32:41Z')
  })

  test('it has the packages of CycloneDX, with their digests and licences', () => {
    const all = (components: readonly Listed[]): readonly Listed[] => components.flatMap((one) => [one, ...all(one.components ?? [])])
    const { metadata, components } = JSON.parse(image) as Sbom
    const listed = all([metadata.component, ...components])
    expect(document.packages.map(({ name, versionInfo }) => `${name} ${versionInfo}`).toSorted()).toEqual(
      listed.map(({ name, version }) => `${name} ${version}`).toSorted(),
    )
    const zod = listed.find(({ name }) => name === 'zod')
    expect(document.packages.find(({ name }) => name === 'zod')).toMatchObject({
      licenseDeclared: 'MIT',
      checksums: [{ algorithm: 'SHA512', checksumValue: zod?.hashes?.[0]?.content }],
      downloadLocation: expect.stringMatching(/^https:\/\/registry\.npmjs\.org\/zod\//),
    })
    expect(document.hasExtractedLicensingInfos?.map(({ licenseId }) => licenseId)).toEqual(['LicenseRef-public-domain'])
  })

  test('each identifier is unique, each relation has two known ends, and each package is reached from the document', () => {
    const ids = document.packages.map(({ SPDXID }) => SPDXID)
    expect(new Set(ids).size).toBe(ids.length)
    const known = new Set<string>([...ids, document.SPDXID])
    const { relationships } = document
    expect(relationships.filter((one) => !known.has(one.spdxElementId) || !known.has(one.relatedSpdxElement))).toEqual([])
    const reached = new Set<string>([document.SPDXID])
    for (const id of reached) for (const one of relationships) if (one.spdxElementId === id) reached.add(one.relatedSpdxElement)
    expect([...known].filter((id) => !reached.has(id))).toEqual([])
  })
})

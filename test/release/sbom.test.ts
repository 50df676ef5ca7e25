/** The software bill of materials: complete, valid and equal in each run. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { sbomOf, sbomText, type SbomSources } from '../../scripts/package/sbom.ts'

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

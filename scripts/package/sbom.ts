/**
 * Writes sbom.cdx.json and sbom.spdx.json, the software bill of materials of a package (CycloneDX 1.5, SPDX 2.3): the production packages of
 * package-lock.json, SQLite, and Node for packages that have one. Equal commits give equal files. `node scripts/package/sbom.ts`
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { DebianPackage } from './image/debian.ts'
import { lockedPackages, type Lock, type LockedPackage } from './production.ts'
import { sourceDate } from './source-date.ts'
import { bomFiles } from './spdx.ts'

export interface Component {
  readonly type: 'library' | 'application' | 'platform'
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly licenses: readonly ({ readonly license: { readonly id: string } } | { readonly expression: string })[]
  readonly hashes?: readonly { readonly alg: 'SHA-256' | 'SHA-512'; readonly content: string }[]
  readonly externalReferences?: readonly { readonly type: 'distribution'; readonly url: string }[]
  readonly components?: readonly Component[]
}

export interface Edge {
  readonly ref: string
  readonly dependsOn: readonly string[]
}

/** Licences of the libraries in Node, by their names in process.versions. */
const NODE_PARTS: Readonly<Record<string, string>> = {
  ada: 'MIT',
  ares: 'MIT',
  brotli: 'MIT',
  llhttp: 'MIT',
  nghttp2: 'MIT',
  openssl: 'Apache-2.0',
  sqlite: 'blessing',
  undici: 'MIT',
  unicode: 'Unicode-3.0',
  uv: 'MIT',
  v8: 'BSD-3-Clause',
  zlib: 'Zlib',
  zstd: 'BSD-3-Clause',
}

const licensed = (id: string): Component['licenses'] => [{ license: { id } }]

/** Package URL of a package of npm: `pkg:npm/%40zone-eu/mailsplit@5.4.2`. */
const npmUrl = (name: string, version: string): string => `pkg:npm/${name.replace('@', '%40')}@${version}`

const generic = (name: string, version: string, license: string): Component => {
  const purl = `pkg:generic/${name}@${version}`
  return { type: 'library', 'bom-ref': purl, name, version, purl, licenses: licensed(license) }
}

const SQLITE = 'better-sqlite3'

function npmComponent({ name, version, license, integrity }: LockedPackage, sqlite: Component): Component {
  const purl = npmUrl(name, version)
  const [, digest = ''] = /^sha512-(\S+)$/.exec(integrity) ?? []
  if (digest === '') throw new Error(`package-lock.json has no SHA-512 of ${name}: repeat npm install`)
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    licenses: licensed(license),
    hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    externalReferences: [
      { type: 'distribution', url: `https://registry.npmjs.org/${name}/-/${name.slice(name.indexOf('/') + 1)}-${version}.tgz` },
    ],
    ...(name === SQLITE ? { components: [sqlite] } : {}),
  }
}

/** Node with the libraries in it. Throws when the running Node is another one. */
function nodeComponent(version: string): Component {
  const { versions } = process
  if (versions.node !== version) throw new Error(`Node ${versions.node} runs, and the package has ${version}: call this by npm`)
  const parts = Object.entries(NODE_PARTS).flatMap(([name, license]) => {
    const found = versions[name]
    // Node was built without it.
    return found === undefined ? [] : [generic(name, found.replace(/[^\w.+-].*/, ''), license)]
  })
  const purl = `pkg:generic/node@${version}?download_url=https://nodejs.org/dist/v${version}/`
  const nested = parts.map((part) => ({ ...part, 'bom-ref': `${purl}#${part.name}` }))
  return { type: 'platform', 'bom-ref': purl, name: 'node', version, purl, licenses: licensed('MIT'), components: nested }
}

/** Package URL of a package of Debian: `pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64`. */
function debianComponent({ name, version, architecture, license, digest }: DebianPackage): Component {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=bookworm`
  const licenses = [{ expression: license }]
  return { type: 'library', 'bom-ref': purl, name, version, purl, licenses, hashes: [{ alg: 'SHA-256', content: digest }] }
}

/** The edges of the graph: each package with those that Node finds from its folder. */
function edges(root: string, packages: readonly LockedPackage[], needed: readonly string[]): readonly Edge[] {
  const byFolder = new Map(packages.map((one) => [one.folder, one]))
  const found = (from: string, name: string): string[] => {
    for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
      const one = byFolder.get(folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`)
      if (one !== undefined) return [npmUrl(one.name, one.version)]
      // An optional package that is not in the lock file.
      if (folder === '') return []
    }
  }
  return [
    { ref: root, dependsOn: needed.flatMap((name) => found('', name)) },
    ...packages.map(({ folder, name, version, dependencies }) => ({
      ref: npmUrl(name, version),
      dependsOn: dependencies.flatMap((other) => found(folder, other)),
    })),
  ]
}

export interface SbomSources {
  readonly lock: Lock
  readonly manifest: {
    readonly name: string
    readonly version: string
    readonly license: string
    readonly dependencies: Readonly<Record<string, string>>
  }
  /** Version of the Node in the package; null for a package without one. */
  readonly node: string | null
  /** Packages of Debian, in an image. */
  readonly debian?: readonly DebianPackage[]
}

function sqliteVersion(): string {
  const db = new Database(':memory:')
  try {
    return String(db.prepare('select sqlite_version()').pluck().get())
  } finally {
    db.close()
  }
}

/** A UUID of version 8 (RFC 9562) from a digest of the content. */
function uuidOf(content: string): string {
  const hex = createHash('sha256').update(content).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The bill of materials as text. It has no time: that of a build would differ in each. */
export function sbomText({ lock, manifest, node, debian = [] }: SbomSources): string {
  const packages = lockedPackages(lock)
  const { name, version, license, dependencies } = manifest
  const purl = npmUrl(name, version)
  const sqlite = generic('sqlite', sqliteVersion(), 'blessing')
  const content = {
    metadata: { component: { type: 'application', 'bom-ref': purl, name, version, purl, licenses: licensed(license) } satisfies Component },
    components: [
      ...packages.map((one) => npmComponent(one, sqlite)),
      ...(node === null ? [] : [nodeComponent(node)]),
      ...debian.map(debianComponent),
    ],
    dependencies: edges(purl, packages, Object.keys(dependencies)),
  }
  const head = { bomFormat: 'CycloneDX', specVersion: '1.5', serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}`, version: 1 }
  return `${JSON.stringify({ ...head, ...content }, null, 2)}\n`
}

/** The bill of materials of the checkout. */
export function sbomOf(root: string, node: string | null, debian: readonly DebianPackage[] = []): string {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(root, file), 'utf8'))
  return sbomText({ lock: read('package-lock.json') as Lock, manifest: read('package.json') as SbomSources['manifest'], node, debian })
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '../..')
  for (const [name, text] of bomFiles(sbomOf(root, null), sourceDate(root))) writeFileSync(join(root, name), text)
}

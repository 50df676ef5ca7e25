/** Writes the image of deferd for containers as an OCI image layout. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readOwner } from '../../release/owner.ts'
import { VERSION } from '../../../src/system/version.ts'
import { ARCHITECTURES, DEBIAN, type Architecture } from '../architecture.ts'
import { nodeVersion, type Build } from '../build.ts'
import { copy } from '../entry.ts'
import { sbomOf } from '../sbom.ts'
import { bomFiles } from '../spdx.ts'
import { tarOf } from '../tar.ts'
import { downloadPackages, keepPackages, unpackPackages } from './debian.ts'
import type { ImageFacts } from './image-config.ts'
import { writeLayout, type Image } from './layout-files.ts'
import type { ImageOptions } from './options.ts'
import { baseContents, programContents } from './root-files.ts'

function factsOf({ root, at }: Build): ImageFacts {
  const revision = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
  return { version: VERSION, revision, source: readOwner(join(root, 'release/owner.json')).repository, at }
}

/** Formats of the bill of materials, as the ends of names of files. */
export const BOM_FORMATS = ['cdx.json', 'spdx.json'] as const

const bomName = (architecture: Architecture, format: string): string => `sbom-${DEBIAN[architecture]}.${format}`

/** The files of a layout by the specification. */
const LAYOUT_FILES = ['blobs/sha256', 'index.json', 'oci-layout']

/** The images, one at a time: each has 150 MB. */
function* images(build: Build, { out, architectures }: ImageOptions, debian: string): Generator<Image> {
  const { root, work } = build
  for (const architecture of architectures) {
    const sources = build.sources(architecture)
    const name = DEBIAN[architecture]
    build.progress(`packing the image for ${name}`)
    const { entries, packages } = unpackPackages(debian, architecture, work)
    const boms = bomFiles(sbomOf(root, nodeVersion(root), packages), build.at)
    for (const format of BOM_FORMATS) writeFileSync(join(out, bomName(architecture, format)), boms.get(`sbom.${format}`) ?? '')
    yield { architecture, layers: [baseContents(entries), programContents(sources, boms)].map((contents) => tarOf(contents, build)) }
  }
}

/** Returns the path of the layout. Throws when there is an image in it, and when a command fails. */
export function writeImage(build: Build, options: ImageOptions): string {
  const { out, architectures } = options
  if (existsSync(join(out, 'index.json'))) throw new Error(`${out} has an image: remove it, or name another folder`)
  mkdirSync(out, { recursive: true })
  const debian = options.debian ?? join(build.work, 'debian')
  build.progress(options.debian === null ? 'getting packages of Debian' : `taking the packages of Debian in ${debian}`)
  if (options.debian === null) downloadPackages(architectures, build.work, debian)
  const facts = factsOf(build)
  writeLayout(out, images(build, options, debian), facts)
  keepPackages(debian, architectures, join(out, 'debian'))
  return out
}

/** Writes the layout as an archive, and the bills of materials of its architectures beside it. */
export function writeImageArchive(build: Build, { out, debian }: Omit<ImageOptions, 'architectures'>): void {
  const folder = writeImage(build, { out: join(build.work, 'image'), architectures: ARCHITECTURES, debian })
  mkdirSync(out, { recursive: true })
  const name = join(out, `deferd-${VERSION}-image`)
  const files = LAYOUT_FILES.flatMap((path) =>
    statSync(join(folder, path)).isFile() ? [path] : readdirSync(join(folder, path)).map((file) => `${path}/${file}`),
  )
  writeFileSync(`${name}.tar`, tarOf({ entries: files.map((path) => copy(join(folder, path), path)), folders: [] }, build))
  for (const architecture of ARCHITECTURES)
    for (const format of BOM_FORMATS) copyFileSync(join(folder, bomName(architecture, format)), `${name}-${DEBIAN[architecture]}.${format}`)
}

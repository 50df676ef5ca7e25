/**
 * The artefacts of a release, in one table: `node scripts/package/artefacts.ts --out FOLDER` builds all of them, with the sources compiled once, and
 * prints a line of sha256sum(1) for each file.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { VERSION } from '../../src/system/version.ts'
import { ARCHITECTURES, DEBIAN } from './architecture.ts'
import { COMPRESSIONS, type Compression } from './archive.ts'
import { Build } from './build.ts'
import { withOptions } from './command-line.ts'
import { writeDebs } from './debs.ts'
import { BOM_FORMATS, writeImageArchive } from './image/write-image.ts'
import { writeNpmPackage } from './npm-package.ts'
import { debianVersion } from './options.ts'
import { siteArchive, writeSiteArchive } from '../site/site-archive.ts'
import { writeExecutables } from './single/executables.ts'

export interface ArtefactOptions {
  readonly out: string
  readonly compression: Compression
  /** Folder of the packages of Debian for the image; null for those of the mirror. */
  readonly debian: string | null
}

interface Artefact {
  readonly name: string
  /** Names of the files for a version of deferd. */
  readonly files: (version: string) => readonly string[]
  readonly write: (build: Build, options: ArtefactOptions) => unknown
}

export const ARTEFACTS: readonly Artefact[] = [
  {
    name: 'npm',
    files: (version) => [`deferd-${version}.tgz`],
    write: (build, { out }) => writeNpmPackage(build, out),
  },
  {
    name: 'deb',
    files: (version) => [
      ...ARCHITECTURES.map((architecture) => `deferd_${debianVersion(version)}_${DEBIAN[architecture]}.deb`),
      `deferd-mta_${debianVersion(version)}_all.deb`,
    ],
    write: (build, { out, compression }) => writeDebs(build, { out, compression, architectures: ARCHITECTURES }),
  },
  {
    name: 'image',
    files: (version) => [
      `deferd-${version}-image.tar`,
      ...ARCHITECTURES.flatMap((architecture) => BOM_FORMATS.map((format) => `deferd-${version}-image-${DEBIAN[architecture]}.${format}`)),
    ],
    write: (build, { out, debian }) => writeImageArchive(build, { out, debian }),
  },
  {
    name: 'single',
    files: () => [...ARCHITECTURES.map((architecture) => `deferd-linux-${architecture}`), 'THIRD-PARTY-NOTICES'],
    write: (build, { out }) => writeExecutables(build, { out, architectures: ARCHITECTURES }),
  },
  {
    name: 'site',
    files: (version) => [siteArchive(version)],
    write: (build, { out }) => writeSiteArchive(build, out),
  },
]

/** Builds the artefacts of these names into a folder. Throws when one lacks a file afterwards. */
export async function writeArtefacts(names: readonly string[], options: ArtefactOptions): Promise<void> {
  using build = new Build(debianVersion(VERSION))
  for (const { name, write } of ARTEFACTS) if (names.includes(name)) await write(build, options)
}

/** Lines of sha256sum(1) for the files of the artefacts. Throws when one is absent. */
export const checksums = (names: readonly string[], folder: string): readonly string[] =>
  ARTEFACTS.filter(({ name }) => names.includes(name)).flatMap(({ files }) =>
    files(VERSION).map(
      (file) =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, file)))
          .digest('hex')}  ${file}`,
    ),
  )

const USAGE = `usage: node scripts/package/artefacts.ts [--out FOLDER] [--only NAME]... [--compression xz|gzip] [--debian FOLDER]
Builds ${ARTEFACTS.map(({ name }) => name).join(', ')}, by default into ./release/artefacts. With --debian, the image has the packages of Debian in a folder.`

function read(args: readonly string[]): ArtefactOptions & { readonly names: readonly string[] } {
  const { values } = parseArgs({
    args: [...args],
    options: {
      out: { type: 'string', default: 'release/artefacts' },
      only: { type: 'string', multiple: true },
      compression: { type: 'string', default: 'xz' },
      debian: { type: 'string' },
    },
  })
  const known = ARTEFACTS.map(({ name }) => name)
  const strange = values.only?.find((name) => !known.includes(name))
  if (strange !== undefined) throw new Error(`--only ${strange}: expected ${known.join(', ')}`)
  const compression = COMPRESSIONS.find((one) => one === values.compression)
  if (compression === undefined) throw new Error(`--compression ${values.compression}: expected ${COMPRESSIONS.join(' or ')}`)
  const debian = values.debian === undefined ? null : resolve(values.debian)
  return { names: values.only ?? known, out: resolve(values.out), compression, debian }
}

if (import.meta.main)
  await withOptions(USAGE, read, async ({ names, ...options }) => {
    await writeArtefacts(names, options)
    return checksums(names, options.out)
  })

/**
 * Writes the package for npm, with the files of `npm pack`. The checkout stays as it is. The order of the archive is that of the paths, by which it is a
 * twentieth smaller than in the order of npm, and its bytes do not depend on the version of npm.
 */
import { chmodSync, copyFileSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Build } from './build.ts'
import { compact } from './compact.ts'
import { copy, FILE_MODE, PROGRAM_MODE } from './entry.ts'
import { sbomOf } from './sbom.ts'
import { bomFiles } from './spdx.ts'
import { gzipped, tarOf } from './tar.ts'

interface Manifest {
  readonly name: string
  readonly version: string
  readonly files: readonly string[]
}

/** Files that npm adds to those of `files` in package.json. */
const ADDED = ['package.json', 'README.md', 'LICENSE']

/** Files of the package by the checkout and by a build. */
const isMade = (name: string): boolean => name === 'dist' || name.startsWith('sbom.')

function copyInto(stage: string, path: string, from: string): void {
  const to = join(stage, path)
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(from, to)
  chmodSync(to, (statSync(from).mode & 0o100) === 0 ? FILE_MODE : PROGRAM_MODE)
}

/** Returns the path of the package in the folder `out`. Throws when gzip(1) fails. */
export function writeNpmPackage(build: Build, out: string): string {
  const { root, work, at, common } = build
  build.progress('packing for npm')
  const stage = join(work, 'npm')
  const manifestText = readFileSync(join(root, 'package.json'), 'utf8')
  const manifest = JSON.parse(manifestText) as Manifest
  const patterns = [...manifest.files.filter((name) => !isMade(name) && !name.startsWith('!')), ...ADDED]
  const files = patterns.flatMap((name) => (statSync(join(root, name)).isFile() ? [name] : globSync(`${name}/**`, { cwd: root })))
  for (const path of files) if (statSync(join(root, path)).isFile()) copyInto(stage, path, join(root, path))
  for (const path of common.compiled) copyInto(stage, `dist/${path}`, join(root, common.dist, path))
  compact(join(stage, 'dist'), manifestText)
  for (const [name, text] of bomFiles(sbomOf(root, null), at)) {
    writeFileSync(join(stage, name), text)
    chmodSync(join(stage, name), FILE_MODE)
  }
  const paths = globSync('**', { cwd: stage }).filter((path) => statSync(join(stage, path)).isFile())
  const entries = paths.map((path) => copy(path, `package/${path}`, statSync(join(stage, path)).mode & 0o777))
  const file = join(out, `${manifest.name}-${manifest.version}.tgz`)
  mkdirSync(out, { recursive: true })
  writeFileSync(file, gzipped(tarOf({ entries, folders: null }, { root: stage, at }), 9))
  return file
}

/** Writes the site of a version as an archive, in the folder of its version. */
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { VERSION } from '../../src/system/version.ts'
import type { Build } from '../package/build.ts'
import { copy } from '../package/entry.ts'
import { gzipped, tarOf } from '../package/tar.ts'
import { readOwner } from '../release/owner.ts'
import { writeSite } from './write-site.ts'

/** Name of the archive. */
export const siteArchive = (version: string): string => `deferd-${version}-site.tar.gz`

/** Throws when a link leads nowhere, and when gzip(1) fails. */
export function writeSiteArchive(build: Build, out: string): void {
  build.progress('building the site')
  const site = join(build.work, 'site')
  writeSite({ root: build.root, out: site, version: VERSION, homepage: readOwner(join(build.root, 'release/owner.json')).homepage })
  const paths = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((path) => statSync(join(site, path)).isFile())
  mkdirSync(out, { recursive: true })
  const archive = tarOf({ entries: paths.toSorted().map((path) => copy(path, path)), folders: null }, { root: site, at: build.at })
  writeFileSync(join(out, siteArchive(VERSION)), gzipped(archive, 9))
}

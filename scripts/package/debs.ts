/** Writes the Debian packages `deferd` of each architecture, and `deferd-mta`. */
import { mkdirSync } from 'node:fs'
import { buildArchive } from './archive.ts'
import { DEBIAN } from './architecture.ts'
import { sharedLibraries, type Build } from './build.ts'
import { debName } from './control.ts'
import type { DebOptions } from './options.ts'
import { mtaPackage, relayPackage } from './packages.ts'

/** Returns the paths of the files. Throws when dpkg-deb(1) fails. */
export function writeDebs(build: Build, { out, architectures, compression }: Omit<DebOptions, 'version'>): readonly string[] {
  const { root, at, release } = build
  mkdirSync(out, { recursive: true })
  const relays = architectures.map((architecture) => {
    const sources = build.sources(architecture)
    return relayPackage({ ...release, architecture: DEBIAN[architecture], libraries: sharedLibraries(sources, root) }, sources)
  })
  const mta = mtaPackage(release, { ...build.common, copyright: build.common.read('LICENSE') })
  return [...relays, mta].map((one) => {
    build.progress(`packing ${debName(one.control)}`)
    return buildArchive(one, { root, out, at, compression })
  })
}

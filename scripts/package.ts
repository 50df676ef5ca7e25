/**
 * Builds the Debian packages `deferd` and `deferd-mta` for the platform of this machine, from the installed node_modules. Equal
 * commits give equal files. Needs dpkg-dev and binutils; neither root nor a network.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { errorMessage } from '../src/system/caught-error.ts'
import { VERSION } from '../src/system/version.ts'
import { buildArchive } from './package/archive.ts'
import { collect, debianArchitecture, lastCommitAt, sharedLibraries } from './package/build.ts'
import { packageOptions, USAGE, type PackageOptions } from './package/options.ts'
import { mtaPackage, relayPackage } from './package/packages.ts'

const root = join(import.meta.dirname, '..')

function build({ out, version, compression }: PackageOptions): readonly string[] {
  const { DEBFULLNAME = 'deferd maintainers', DEBEMAIL = 'maintainers@deferd.example', SOURCE_DATE_EPOCH } = process.env
  const at = SOURCE_DATE_EPOCH === undefined ? lastCommitAt(root) : Number(SOURCE_DATE_EPOCH)
  const release = { version, maintainer: `${DEBFULLNAME} <${DEBEMAIL}>` }
  const progress = (text: string): void => console.error(`${text} …`)
  const work = mkdtempSync(join(tmpdir(), 'deferd-build-'))
  try {
    const options = { root, work, release, at }
    progress('compiling the sources, and collecting Node and the dependencies')
    const sources = collect(options)
    progress('looking up the packages of the shared libraries')
    const libraries = sharedLibraries(sources, options)
    const relay = relayPackage({ ...release, architecture: debianArchitecture(root), libraries }, sources)
    const archive = { root, out: resolve(out), at, compression }
    mkdirSync(archive.out, { recursive: true })
    return [relay, mtaPackage(release, { ...sources, copyright: sources.read('LICENSE') })].map((one) => {
      progress(`packing ${one.control.name}`)
      return buildArchive(one, archive)
    })
  } finally {
    rmSync(work, { recursive: true })
  }
}

let options: PackageOptions | undefined
try {
  options = packageOptions(process.argv.slice(2), VERSION)
} catch (error) {
  console.error(`${errorMessage(error)}\n${USAGE}`)
  process.exitCode = 64
}
if (options !== undefined) for (const file of build(options)) console.log(file)

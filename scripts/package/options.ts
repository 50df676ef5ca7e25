/** Command line of `npm run package`. */
import { parseArgs } from 'node:util'
import { fromDebian, ownArchitecture, type Architecture } from './architecture.ts'
import { COMPRESSIONS, type Compression } from './archive.ts'

export interface DebOptions {
  readonly out: string
  readonly version: string
  readonly architectures: readonly Architecture[]
  readonly compression: Compression
}

export const USAGE = `usage: node scripts/package.ts [--out FOLDER] [--version VERSION] [--architecture amd64|arm64]... [--compression xz|gzip]
Writes deferd_VERSION_ARCHITECTURE.deb, by default for this machine, and deferd-mta_VERSION_all.deb, by default into ./deb.`

/** Upstream versions of Debian Policy 5.6.12 without an epoch. */
const VERSION = /^\d[A-Za-z0-9.+~]*$/

/** Debian's form of a version: `1.0.0~rc.1` is before `1.0.0`. */
export const debianVersion = (version: string): string => version.replace('-', '~')

/** Reads the arguments. `version` is the default of --version. Throws an Error with a sentence for wrong ones. */
export function packageOptions(args: readonly string[], version: string): DebOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      out: { type: 'string', default: 'deb' },
      version: { type: 'string', default: debianVersion(version) },
      architecture: { type: 'string', multiple: true },
      compression: { type: 'string', default: 'xz' },
    },
  })
  const compression = COMPRESSIONS.find((known) => known === values.compression)
  if (compression === undefined) throw new Error(`--compression ${values.compression}: expected ${COMPRESSIONS.join(' or ')}`)
  if (!VERSION.test(values.version))
    throw new Error(`--version ${values.version}: expected a digit, then letters, digits, ".", "+" and "~"`)
  const architectures = values.architecture === undefined ? [ownArchitecture()] : fromDebian(values.architecture)
  return { out: values.out, version: values.version, architectures, compression }
}

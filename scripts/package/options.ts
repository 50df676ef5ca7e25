/** Command line of `npm run package`. */
import { parseArgs } from 'node:util'
import { COMPRESSIONS, type Compression } from './archive.ts'

export interface PackageOptions {
  readonly out: string
  readonly version: string
  readonly compression: Compression
}

export const USAGE = `usage: node scripts/package.ts [--out FOLDER] [--version VERSION] [--compression xz|gzip]
Writes deferd_VERSION_ARCHITECTURE.deb and deferd-mta_VERSION_all.deb, by default into ./deb.`

/** Upstream versions of Debian Policy 5.6.12 without an epoch. */
const VERSION = /^\d[A-Za-z0-9.+~]*$/

/** Reads the arguments. `version` is the default of --version. Throws an Error with a sentence for wrong ones. */
export function packageOptions(args: readonly string[], version: string): PackageOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      out: { type: 'string', default: 'deb' },
      version: { type: 'string', default: version.replace('-', '~') },
      compression: { type: 'string', default: 'xz' },
    },
  })
  const compression = COMPRESSIONS.find((known) => known === values.compression)
  if (compression === undefined) throw new Error(`--compression ${values.compression}: expected ${COMPRESSIONS.join(' or ')}`)
  if (!VERSION.test(values.version))
    throw new Error(`--version ${values.version}: expected a digit, then letters, digits, ".", "+" and "~"`)
  return { out: values.out, version: values.version, compression }
}

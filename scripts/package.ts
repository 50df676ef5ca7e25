/**
 * Builds the Debian packages `deferd` and `deferd-mta` from the installed node_modules, for any architecture on any other. Equal commits give equal
 * files. Needs dpkg-deb(1), the binutils of the architectures, and the npm registry or the cache of npm; not root.
 */
import { resolve } from 'node:path'
import { VERSION } from '../src/system/version.ts'
import { Build } from './package/build.ts'
import { withOptions } from './package/command-line.ts'
import { writeDebs } from './package/debs.ts'
import { packageOptions, USAGE } from './package/options.ts'

await withOptions(
  USAGE,
  (args) => packageOptions(args, VERSION),
  ({ version, ...options }) => {
    using build = new Build(version)
    return writeDebs(build, { ...options, out: resolve(options.out) })
  },
)

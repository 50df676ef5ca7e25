/**
 * Builds the executables of one file, in which Node, the sources, their dependencies and the files of the package are. Each can be built on both
 * architectures, and equal sources give equal files. Needs the binutils of both, and the npm registry or the cache of npm.
 */
import { resolve } from 'node:path'
import { VERSION } from '../../src/system/version.ts'
import { Build } from './build.ts'
import { withOptions } from './command-line.ts'
import { writeExecutables } from './single/executables.ts'
import { singleOptions, USAGE } from './single/options.ts'

await withOptions(USAGE, singleOptions, async ({ out, architectures }) => {
  using build = new Build(VERSION)
  return await writeExecutables(build, { out: resolve(out), architectures })
})

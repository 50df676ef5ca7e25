/**
 * Builds the image of deferd for containers as an OCI image layout, from packages of Debian, Node and the installed node_modules, for any architecture on
 * any other. Equal commits and equal packages of Debian give equal files. Needs neither root nor a container tool, but dpkg-deb(1), gzip(1), the
 * binutils of the architectures, and the mirrors of npm and Debian.
 */
import { resolve } from 'node:path'
import { VERSION } from '../../src/system/version.ts'
import { Build } from './build.ts'
import { withOptions } from './command-line.ts'
import { imageOptions, USAGE } from './image/options.ts'
import { writeImage } from './image/write-image.ts'

await withOptions(USAGE, imageOptions, ({ out, debian, architectures }) => {
  using build = new Build(VERSION)
  return [writeImage(build, { architectures, out: resolve(out), debian: debian === null ? null : resolve(debian) })]
})

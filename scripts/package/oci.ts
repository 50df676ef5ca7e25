/**
 * Builds an OCI bundle, the folder `rootfs` with `config.json`, from Debian packages and a package of deferd. Needs mmdebstrap, and root
 * or a user with a range of subordinate ids (uidmap).
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { errorMessage } from '../../src/system/caught-error.ts'
import { ociConfig, packageNames, userIn } from './oci-config.ts'

const USAGE = `usage: node scripts/package/oci.ts --deb FILE --out FOLDER [--suite NAME]
Writes FOLDER/rootfs, FOLDER/config.json and the empty FOLDER/queue, which has to belong to the user deferd of the root file system.`

/** Options of dpkg: documentation is left out. The copyright files stay, as their licences demand. */
const LEAN = ['path-exclude=/usr/share/man/*', 'path-exclude=/usr/share/doc/*', 'path-include=/usr/share/doc/*/copyright']

const INSTALL = 'chroot "$1" sh -c "dpkg --install /tmp/*.deb && rm /tmp/*.deb"'
/** The host has these files. The empty resolv.conf is the place for a mount of the host's file. */
const HOST_FILES = 'rm -f "$1"/etc/hostname "$1"/etc/resolv.conf && touch "$1"/etc/resolv.conf'

function makeRoot(deb: string, rootfs: string, suite: string): void {
  const depends = execFileSync('dpkg-deb', ['--field', deb, 'Depends'], { encoding: 'utf8' })
  const hooks = [`copy-in ${deb} /tmp`, INSTALL, HOST_FILES]
  const args = [
    '--quiet',
    '--variant=essential',
    `--include=${[...packageNames(depends), 'ca-certificates'].join(',')}`,
    ...LEAN.map((option) => `--dpkgopt=${option}`),
    ...hooks.map((hook) => `--customize-hook=${hook}`),
    suite,
    rootfs,
  ]
  execFileSync('mmdebstrap', args, { stdio: ['ignore', 'ignore', 'inherit'] })
}

function build(deb: string, out: string, suite: string): void {
  const rootfs = join(out, 'rootfs')
  if (existsSync(rootfs)) throw new Error(`${rootfs} exists: remove it, or name another folder`)
  mkdirSync(join(out, 'queue'), { recursive: true })
  makeRoot(deb, rootfs, suite)
  const config = ociConfig(userIn(readFileSync(join(rootfs, 'etc/passwd'), 'utf8'), 'deferd'))
  writeFileSync(join(out, 'config.json'), `${JSON.stringify(config, null, 2)}\n`)
}

try {
  const { values } = parseArgs({
    options: { deb: { type: 'string' }, out: { type: 'string' }, suite: { type: 'string', default: 'bookworm' } },
  })
  if (values.deb === undefined || values.out === undefined) throw new Error('--deb and --out are needed')
  build(resolve(values.deb), resolve(values.out), values.suite)
} catch (error) {
  console.error(`${errorMessage(error)}\n${USAGE}`)
  process.exitCode = 1
}

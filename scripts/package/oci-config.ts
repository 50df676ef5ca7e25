/** Configuration of an OCI bundle (config.json of the OCI runtime specification 1.0). */

export interface ContainerUser {
  readonly uid: number
  readonly gid: number
}

/** Ids of a user in the text of a password file (passwd(5)). Throws when the user is absent. */
export function userIn(passwd: string, name: string): ContainerUser {
  const [, uid, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(passwd) ?? []
  if (uid === undefined || gid === undefined) throw new Error(`the root file system has no user ${name}: was the package installed?`)
  return { uid: Number(uid), gid: Number(gid) }
}

/** Names in a Depends field, without versions and further alternatives: `libc6 (>= 2.34), a | b` gives `libc6` and `a`. */
export const packageNames = (depends: string): readonly string[] =>
  depends.split(',').map((relation) => relation.trim().replace(/[\s|(:].*$/, ''))

const mount = (destination: string, type: string, options: readonly string[], source = type) => ({ destination, type, source, options })

const SAFE = ['nosuid', 'noexec', 'nodev']

/**
 * A container that runs the relay as the user deferd on a read-only root. The folder `queue` beside config.json is the queue
 * folder. The network is that of the host.
 */
export const ociConfig = ({ uid, gid }: ContainerUser) => ({
  ociVersion: '1.0.2',
  hostname: 'deferd',
  root: { path: 'rootfs', readonly: true },
  process: {
    user: { uid, gid },
    cwd: '/',
    args: ['/usr/bin/deferd', 'start'],
    env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin'],
    capabilities: {},
    noNewPrivileges: true,
  },
  mounts: [
    mount('/proc', 'proc', SAFE),
    mount('/dev', 'tmpfs', ['nosuid', 'strictatime', 'mode=755', 'size=64k']),
    mount('/tmp', 'tmpfs', [...SAFE, 'mode=1777', 'size=64m']),
    mount('/etc/resolv.conf', 'bind', ['bind', 'ro', ...SAFE], '/etc/resolv.conf'),
    mount('/var/lib/deferd', 'bind', ['bind', 'rw', ...SAFE], 'queue'),
  ],
  linux: {
    namespaces: ['pid', 'ipc', 'mount', 'uts'].map((type) => ({ type })),
    maskedPaths: ['/proc/kcore', '/proc/keys', '/proc/sysrq-trigger'],
    readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys'],
  },
})

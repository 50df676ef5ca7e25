/** The OCI bundle, a Debian root with the package: the relay runs on a read-only root, without root. */
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { greeted, startChild, type Child } from '../../scripts/bench/child.ts'
import type { ociConfig } from '../../scripts/package/oci-config.ts'
import { buildPackages, command, must, root, skipReason } from './tools.ts'
import { portBelowEphemeral } from '../support/ports.ts'

const reason = skipReason('mmdebstrap', 'runc', 'bwrap', 'dpkg-shlibdeps', 'strip')

const MINUTES = 60_000

/** nobody(4), a user without privileges. */
const NOBODY = 65534

describe.skipIf(reason !== null)(
  `the OCI bundle${reason === null ? '' : ` (${reason})`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-oci-'))
    const bundle = join(folder, 'bundle')
    const configFile = join(bundle, 'config.json')

    beforeAll(async () => {
      chmodSync(folder, 0o755)
      const [deb] = await buildPackages(folder)
      await must(process.execPath, ['scripts/package/oci.ts', '--deb', deb, '--out', bundle])
    }, 6 * MINUTES)

    afterAll(() => rmSync(folder, { recursive: true }), MINUTES)

    const readConfig = () => JSON.parse(readFileSync(configFile, 'utf8')) as ReturnType<typeof ociConfig>
    const listenAt = (port: number): readonly string[] => ['-o', `smtpd_listen=127.0.0.1:${port}`]

    /** Sends mail to the relay of a queue, whose recipient refuses no connection and answers none. */
    async function send(queue: string): Promise<string> {
      const args = ['bin/deferd.js', 'sendmail', '-o', `queue_directory=${queue}`, '-v', '-f', 'me@example.com', 'you@[192.0.2.1]']
      return must('sh', ['-c', 'printf "Subject: test\\n\\nText.\\n" | "$@"', 'sh', process.execPath, ...args])
    }

    /** Starts a program, which runs a relay, and waits for the greeting at the port. */
    async function start(port: number, program: string, args: readonly string[]): Promise<Child> {
      const relay = await startChild(program, { program, args, cwd: root }, join(folder, `${program}.log`))
      await greeted(relay, port, AbortSignal.timeout(MINUTES))
      return relay
    }

    test('an OCI runtime starts it as the user deferd', async () => {
      const port = await portBelowEphemeral()
      const config = readConfig()
      const { user, args } = config.process
      chownSync(join(bundle, 'queue'), user.uid, user.gid)
      writeFileSync(configFile, JSON.stringify({ ...config, process: { ...config.process, args: [...args, ...listenAt(port)] } }))
      const runc = (...rest: readonly string[]): readonly string[] => ['--root', join(folder, 'runc'), ...rest]
      const name = `deferd-${process.pid}`
      const relay = await start(port, 'runc', runc('run', '--bundle', bundle, name))
      expect(await send(join(bundle, 'queue'))).toContain('queued as')
      expect((await command('runc', runc('exec', name, 'id', '--user', '--name'))).stdout).toBe('deferd\n')
      expect((await command('runc', runc('exec', name, 'touch', '/usr/x'))).stderr).toMatch(/Read-only file system|Permission denied/)
      expect((await command('runc', runc('exec', '--user', '0', name, 'touch', '/usr/x'))).stderr).toContain('Read-only file system')
      await relay.stop()
      expect(await relay.ended).toBe('exit code 0')
    })

    test('a user without privileges starts it', async () => {
      const port = await portBelowEphemeral()
      const { user, args, env } = readConfig().process
      const queue = mkdtempSync(join(tmpdir(), 'deferd-queue-'))
      chownSync(queue, NOBODY, NOBODY)
      const identity = [
        '--unshare-user',
        '--uid',
        String(user.uid),
        '--gid',
        String(user.gid),
        '--unshare-pid',
        '--die-with-parent',
        '--clearenv',
      ]
      const files = ['--ro-bind', join(bundle, 'rootfs'), '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--bind', queue]
      const bwrap = [
        ...identity,
        ...files,
        '/var/lib/deferd',
        '--setenv',
        'PATH',
        env[0]?.slice('PATH='.length) ?? '',
        ...args,
        ...listenAt(port),
      ]
      const relay = await start(port, 'setpriv', [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', 'bwrap', ...bwrap])
      expect(await send(queue)).toContain('queued as')
      await relay.stop()
      rmSync(queue, { recursive: true })
    })
  },
  6 * MINUTES,
)

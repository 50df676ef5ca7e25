/** The image in runc, started by podman with the commands of docs/install.md: on a read-only root, without root, with and without a volume. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VERSION } from '../../src/system/version.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { installCommands, NewcomerShell, Receiver } from './install-page.ts'
import { command, ENVIRONMENT, must, skipReason, type Result } from './tools.ts'

const reason = skipReason('podman', 'runc', 'skopeo', 'umoci', 'apt-get', 'dpkg-deb', 'aarch64-linux-gnu-strip')

const MINUTES = 60_000

/** Limits that a sandbox can set, the network of the machine, and runc in the place of crun. */
const CONTAINERS = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
netns = "host"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
`

describe.skipIf(reason !== null)(
  `the image${reason === null ? '' : ` (${reason})`}`,
  () => {
    // The folder of the other tests is in memory, where the program refuses a queue.
    const folder = mkdtempSync('/var/tmp/deferd-image-')
    const archive = `deferd-${VERSION}-image.tar`
    const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')]
    const env = { ...ENVIRONMENT, CONTAINERS_CONF: join(folder, 'containers.conf') }
    const podman = (...args: readonly string[]): Promise<Result> => command('podman', [...storage, ...args], env)
    const image = `oci-archive:${join(folder, archive)}:${VERSION}`

    beforeAll(async () => {
      writeFileSync(join(folder, 'containers.conf'), CONTAINERS)
      await must(process.execPath, ['scripts/package/artefacts.ts', '--only', 'image', '--out', folder], process.env)
    }, 20 * MINUTES)

    afterAll(async () => {
      await podman('rm', '--all', '--force')
      await podman('volume', 'rm', '--all', '--force')
      rmSync(folder, { recursive: true, force: true })
    }, 2 * MINUTES)

    test('skopeo reads both platforms, and umoci unpacks one', async () => {
      for (const architecture of ['amd64', 'arm64']) {
        const read = JSON.parse(await must('skopeo', ['inspect', '--override-arch', architecture, image])) as {
          readonly Architecture: string
          readonly Labels: Readonly<Record<string, string>>
        }
        expect([read.Architecture, read.Labels['org.opencontainers.image.version']]).toEqual([architecture, VERSION])
      }
      await must('skopeo', ['copy', '--quiet', '--all', image, `oci:${join(folder, 'layout')}:${VERSION}`])
      const kept = join(folder, 'files')
      await must('mkdir', [kept])
      await must('tar', ['--extract', '--file', join(folder, archive), '--directory', kept])
      await must('umoci', ['unpack', '--image', `${kept}:${VERSION}-arm64`, join(folder, 'bundle')])
      await must('test', ['-x', join(folder, 'bundle/rootfs/usr/lib/deferd/bin/node')])
    })

    test.each([
      ['without a volume', [], 'is not a volume'],
      ['with memory in the place of a volume', ['--tmpfs', '/var/lib/deferd'], 'is in memory'],
    ])('a start %s is refused: mail would be lost', async (_, options, fact) => {
      const { code, stderr } = await podman('run', '--rm', '--read-only', ...options, image)
      expect(code).toBe(78)
      expect(stderr).toContain(
        `the queue directory /var/lib/deferd ${fact}: mail would be lost with the container; mount a volume (-v mail:/var/lib/deferd)`,
      )
    })

    test('of the lab serves its API on a read-only root, without a volume', async () => {
      const port = await portBelowEphemeral()
      const lab = `${image}-lab`
      expect((await podman('run', '--detach', '--name', 'lab', '--read-only', lab, 'lab', '--http', String(port))).code).toBe(0)
      await expect
        .poll(() =>
          fetch(`http://127.0.0.1:${port}/lab/v1/openapi.json`).then(
            ({ status }) => status,
            () => 0,
          ),
        )
        .toBe(200)
      expect((await podman('stop', '--time', '10', 'lab')).code).toBe(0)
    })

    test('relays a mail with the commands of the page, on a read-only root and without root, and stops in order', async () => {
      const receiver = new Receiver()
      const port = await portBelowEphemeral()
      // The page needs no port of the host: its mail is submitted in the container.
      const own = { ...env, PATH: `${join(folder, 'bin')}:${ENVIRONMENT.PATH}` }
      await must('mkdir', [join(folder, 'bin')])
      const options = `--env DEFERD_SMTPD_LISTEN=127.0.0.1:${port}`
      writeFileSync(
        join(folder, 'bin/sudo'),
        `#!/bin/sh\nshift\ncase "$1" in run) shift; set -- run ${options} "$@";; esac\nexec podman ${storage.join(' ')} "$@"\n`,
        { mode: 0o755 },
      )
      const shell = new NewcomerShell(folder, own)
      const [start = '', send = ''] = installCommands('Container', await receiver.host())
      await shell.type(start)
      const inside = (...args: readonly string[]): Promise<Result> => podman('exec', 'relay', '/usr/lib/deferd/bin/node', ...args)
      await expect.poll(async () => (await podman('exec', 'relay', 'deferd', 'check', '--running')).code).toBe(0)
      await shell.type(send)
      await receiver.hasMail()
      const identity = 'console.log(process.getuid(), process.getgid())'
      expect((await inside('--eval', identity)).stdout).toBe('65532 65532\n')
      const write = (path: string): Promise<Result> => inside('--eval', `require('fs').writeFileSync('${path}', '')`)
      expect((await write('/usr/x')).stderr).toContain('EROFS')
      expect((await podman('exec', 'relay', 'sh')).code).toBe(127)
      expect((await podman('stop', '--time', '10', 'relay')).code).toBe(0)
      expect((await podman('inspect', '--format', '{{.State.ExitCode}}', 'relay')).stdout).toBe('0\n')
      await receiver.close()
    })
  },
  10 * MINUTES,
)

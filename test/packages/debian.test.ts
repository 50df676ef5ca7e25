/**
 * The Debian packages on a minimal Debian 12 with systemd: installation, upgrade, removal and purge, with mail in the queue, and
 * beside Postfix. Each test continues with the state that the one before has left.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { installCommands } from './install-page.ts'
import { DebianMachine, makeRoot, POSTFIX } from './debian-machine.ts'
import { buildPackages, command, must, skipReason } from './tools.ts'

const reason = skipReason(
  'mmdebstrap',
  'systemd-nspawn',
  'nsenter',
  'lintian',
  'dpkg-shlibdeps',
  'x86_64-linux-gnu-strip',
  'aarch64-linux-gnu-strip',
)

const MINUTES = 60_000

describe.skipIf(reason !== null)(
  `the Debian packages${reason === null ? '' : ` (${reason})`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-debian-'))
    const files = { first: [] as readonly string[], next: [] as readonly string[], foreign: [] as readonly string[] }
    let machine: DebianMachine

    beforeAll(async () => {
      const machineRoot = join(folder, 'root')
      const made = makeRoot(machineRoot)
      files.first = await buildPackages(join(folder, 'first'))
      files.foreign = await buildPackages(join(folder, 'foreign'), '--architecture', 'arm64')
      files.next = await buildPackages(join(folder, 'next'), '--version', '9.0')
      await made
      machine = await DebianMachine.boot(machineRoot)
      machine.copy(...files.first, ...files.next)
      await machine.must('useradd --create-home joe')
    }, 6 * MINUTES)

    afterAll(async () => {
      await machine?.stop()
      rmSync(folder, { recursive: true })
    }, MINUTES)

    const names = (which: 'first' | 'next'): readonly string[] => files[which].map((file) => `/root/${basename(file)}`)
    const install = (...packages: readonly string[]): Promise<string> =>
      machine.must(`apt-get install --yes --no-install-recommends ${packages.join(' ')} </dev/null`)
    const mainPid = (unit = 'deferd'): Promise<string> => machine.must(`systemctl show --property=MainPID --value ${unit}`)
    const state = async (unit: string): Promise<string> => (await machine.run(`systemctl is-active ${unit}`)).stdout.trim()
    const greeting = (port: number): Promise<string> =>
      machine.must(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}; read -t 20 -r line <&3; echo "$line"'`)
    /** Sends mail as an unprivileged user, with the environment of cron. No host answers at the recipient's address. */
    const sendmail = (subject: string): Promise<string> =>
      machine.must(
        `printf 'Subject: ${subject}\\n\\nText.\\n' | setpriv --reuid=joe --regid=joe --clear-groups env -i /usr/sbin/sendmail -v 'you@[192.0.2.1]'`,
      )
    const queued = async (): Promise<readonly string[]> => {
      const lines = (await machine.must('postqueue -j')).split('\n').filter((line) => line !== '')
      return lines.map((line) => (JSON.parse(line) as { queue_id: string }).queue_id).toSorted()
    }

    test('lintian reports no error, for both architectures', async () => {
      const { code, stdout } = await command('lintian', ['--fail-on', 'error', ...files.first, ...files.foreign])
      expect({ code, errors: stdout.split('\n').filter((line) => line.startsWith('E:')) }).toEqual({ code: 0, errors: [] })
    })

    test('the relation to the packages of shared libraries is that of dpkg-shlibdeps', async () => {
      const [relay = ''] = files.first
      const unpacked = join(folder, 'unpacked')
      await must('dpkg-deb', ['--extract', relay, unpacked])
      const source = join(folder, 'source')
      mkdirSync(join(source, 'debian'), { recursive: true })
      writeFileSync(join(source, 'debian/control'), 'Source: deferd\n\nPackage: deferd\nArchitecture: any\n')
      const binaries = ['bin/node', `node_modules/better-sqlite3/prebuilds/linux-${process.arch}.node`]
      const shlibdeps = ['dpkg-shlibdeps', '-O', ...binaries.map((path) => `-e${join(unpacked, 'usr/lib/deferd', path)}`)]
      const found = await must('sh', ['-c', 'cd "$1"; shift; exec "$@"', 'sh', source, ...shlibdeps])
      const depends = await must('dpkg-deb', ['--field', relay, 'Depends'])
      expect(depends.trim()).toBe(found.trim().replace('shlibs:Depends=', 'adduser, '))
    })

    test('the installation starts the relay on port 2525, with folders of its own user', async () => {
      await install(...names('first'))
      expect(await state('deferd')).toBe('active')
      expect(await machine.must('systemctl is-enabled deferd')).toBe('enabled')
      expect(await greeting(2525)).toMatch(/^220 .* ESMTP/)
      expect(
        await machine.must('stat -c "%U:%G %a %n" /var/lib/deferd /var/lib/deferd/maildrop /var/log/deferd /etc/deferd/deferd.toml'),
      ).toBe(
        [
          'deferd:deferd 711 /var/lib/deferd',
          'deferd:deferd 1733 /var/lib/deferd/maildrop',
          'deferd:deferd 750 /var/log/deferd',
          'root:root 644 /etc/deferd/deferd.toml',
        ].join('\n'),
      )
      expect(await machine.must('deferd check --user deferd >/dev/null && echo sound')).toBe('sound')
    })

    test('a mail is relayed with the commands of docs/install.md', async () => {
      const host = '[127.0.0.1]:2526'
      await machine.must('systemd-run --quiet --unit=sink deferd sink --listen 127.0.0.1:2526')
      // A mail that finds no sink is deferred for five minutes.
      await machine.until(async () => (await greeting(2526).catch(() => '')).startsWith('220 '))
      for (const typed of installCommands('Debian package', host)) await machine.must(`cd /root && { ${typed}; } </dev/null`)
      await machine.until(async () => (await machine.must('journalctl --unit=sink --output=cat')).includes('you@example.net'))
      await machine.must('systemctl stop sink && sed -i /^relayhost/d /etc/deferd/deferd.toml && systemctl restart deferd')
    })

    test('systemd-analyze accepts the unit', async () => {
      expect(await machine.run('systemd-analyze verify --man=no /lib/systemd/system/deferd.service')).toEqual({
        code: 0,
        stdout: '',
        stderr: '',
      })
    })

    test('an unprivileged user sends mail, while the relay runs and while it is stopped', async () => {
      const id = /queued as (\w+)/.exec(await sendmail('running'))?.[1]
      expect(await queued()).toEqual([id])
      await machine.must('systemctl stop deferd')
      expect(await sendmail('stopped')).toContain('maildrop')
      expect(await machine.must('mailq')).toContain('joe@')
      await machine.must('systemctl start deferd')
      await machine.until(async () => (await queued()).length === 2 && !(await machine.must('ls /var/lib/deferd/maildrop')).includes('-'))
      expect(await queued()).toContain(id)
    })

    test('a changed port takes effect with a restart, below 1024 too', async () => {
      await machine.must(
        `sed -i 's/^smtpd_listen = .*/smtpd_listen = ["127.0.0.1:25"]/' /etc/deferd/deferd.toml && systemctl restart deferd`,
      )
      expect(await greeting(25)).toMatch(/^220 /)
    })

    test('systemctl reload puts a change into effect without a restart', async () => {
      const pid = await mainPid()
      await machine.must(`sed -i 's/^# myhostname = .*/myhostname = "changed.example"/' /etc/deferd/deferd.toml && systemctl reload deferd`)
      await machine.until(async () => (await greeting(25)).startsWith('220 changed.example '))
      expect(await mainPid()).toBe(pid)
    })

    test('an upgrade keeps mail and configuration, and starts the new version', async () => {
      const before = await queued()
      const pid = await mainPid()
      await install(...names('next'))
      expect(await machine.must('dpkg-query --show --showformat="\\${Version}" deferd')).toBe('9.0')
      expect(await state('deferd')).toBe('active')
      expect(await mainPid()).not.toBe(pid)
      expect(await queued()).toEqual(before)
      expect(await greeting(25)).toMatch(/^220 changed\.example /)
    })

    test('the maintainer scripts run again without effect', async () => {
      const pid = await mainPid()
      await machine.must('/var/lib/dpkg/info/deferd.postinst configure 9.0')
      expect(await mainPid()).toBe(pid)
    })

    test('a removal stops the relay and keeps mail and configuration for a new installation', async () => {
      const before = await queued()
      await machine.must('apt-get remove --yes deferd-mta deferd')
      expect(await state('deferd')).toBe('inactive')
      expect((await machine.run('ls /usr/lib/deferd /usr/sbin/sendmail /usr/bin/deferd')).stdout).toBe('')
      await machine.must('ls /var/lib/deferd/queue.db /etc/deferd/deferd.toml')
      await install(...names('next'))
      expect(await queued()).toEqual(before)
    })

    test('a purge asks nothing and leaves no file', async () => {
      await machine.must('dpkg --purge deferd-mta deferd </dev/null')
      expect(await state('deferd')).toBe('inactive')
      const left = await machine.must('find / -xdev -name "*deferd*" -not -path "/root/*" -not -path "/var/log/apt/*" -not -path "/proc/*"')
      expect(left).toBe('')
      expect((await machine.run('dpkg --purge deferd-mta deferd </dev/null')).code).toBe(0)
    })

    test('deferd runs beside Postfix; deferd-mta takes its place', async () => {
      await machine.must(`apt-get install --yes --no-install-recommends ${POSTFIX}/*.deb && systemctl start postfix`)
      const [relay = '', mta = ''] = names('first')
      await install(relay)
      expect(await greeting(25)).toContain('Postfix')
      expect(await greeting(2525)).toMatch(/^220 /)
      expect(await machine.must('dpkg --search /usr/sbin/sendmail')).toMatch(/^postfix:/)
      const refused = await machine.run(`dpkg --install ${mta}`)
      expect(refused.code).not.toBe(0)
      expect(refused.stderr).toContain('conflicting packages - not installing deferd-mta')
      await install(mta)
      expect(await machine.must('readlink -f /usr/sbin/sendmail /usr/bin/mailq /usr/sbin/postsuper')).toBe(
        Array.from({ length: 3 }, () => '/usr/lib/deferd/bin/deferd.js').join('\n'),
      )
      expect(await sendmail('in place of Postfix')).toContain('queued as')
      expect((await machine.run('newaliases')).code).toBe(0)
    })

    test('a purge empties a queue folder that is a mount point', async () => {
      await machine.must('systemctl stop deferd && mount --bind /var/lib/deferd /var/lib/deferd')
      await machine.must('dpkg --purge deferd-mta deferd </dev/null')
      expect(await machine.must('ls -A /var/lib/deferd')).toBe('')
      await machine.must('umount /var/lib/deferd && test ! -e /var/log/deferd')
    })
  },
  6 * MINUTES,
)

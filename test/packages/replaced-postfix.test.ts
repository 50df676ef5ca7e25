/** A Postfix on a clean Debian is replaced by the package as docs/import.md says: the test types the commands of the page, in order. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VERSION } from '../../src/system/version.ts'
import { DebianMachine, makeRoot, POSTFIX } from './debian-machine.ts'
import { buildPackages, root, skipReason } from './tools.ts'

const reason = skipReason('mmdebstrap', 'systemd-nspawn', 'nsenter', 'x86_64-linux-gnu-strip')

const MINUTES = 60_000

/** Commands of a section of the page: in its numbered steps, and in its blocks. The package is in another folder here. */
function typed(section: string): readonly string[] {
  const page = readFileSync(join(root, 'docs/import.md'), 'utf8')
  const text = page.split(`\n## ${section}\n`)[1]?.split('\n## ')[0] ?? ''
  const steps = [...text.matchAll(/```sh\n(?<block>.*?)```|`(?<inline>sudo [^`]+)`/gs)]
  return steps.flatMap(({ groups }) => (groups?.['block'] ?? groups?.['inline'] ?? '').trim().split('\n'))
}

const MAIN_CF = `compatibility_level = 3.6
alias_maps = hash:/etc/aliases
myhostname = mx.corp.example
mydestination =
relayhost = [127.0.0.1]:2526
inet_interfaces = loopback-only
smtpd_tls_security_level = may
smtpd_tls_cert_file = /etc/letsencrypt/live/mx/fullchain.pem
smtpd_tls_key_file = /etc/letsencrypt/live/mx/privkey.pem
smtp_generic_maps = texthash:/etc/postfix/generic
smtp_sasl_auth_enable = yes
smtp_sasl_password_maps = texthash:/etc/postfix/sasl_passwd
`

describe.skipIf(reason !== null)(
  `Postfix replaced by deferd${reason === null ? '' : ` (${reason})`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-replaced-'))
    let machine: DebianMachine

    beforeAll(async () => {
      const machineRoot = join(folder, 'root')
      const made = makeRoot(machineRoot)
      const packages = await buildPackages(join(folder, 'deb'))
      await made
      machine = await DebianMachine.boot(machineRoot)
      machine.copy(...packages)
      await machine.must(`mkdir /root/deb && cd /root && mv ${packages.map((file) => basename(file)).join(' ')} deb`)
      await machine.must('useradd --create-home --groups sudo joe')
    }, 6 * MINUTES)

    afterAll(async () => {
      await machine?.stop()
      rmSync(folder, { recursive: true })
    }, MINUTES)

    const greeting = (port: number): Promise<string> =>
      machine.must(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}; read -t 20 -r line <&3; echo "$line"'`)
    const received = async (): Promise<string> => (await machine.run('cat /root/received/*')).stdout
    /** Mail of a program of the machine: by SMTP, as applications send it, each command after the reply to the one before. */
    const submit = (subject: string): Promise<string> =>
      machine.must(
        `bash -c 'exec 3<>/dev/tcp/127.0.0.1/25; say() { printf "$1\\r\\n" >&3; }; reply() { while read -t 20 -r line <&3; do echo "$line"; case "$line" in ???-*) ;; *) return;; esac; done; }; reply; for line in "EHLO app" "MAIL FROM:<app@corp.example>" "RCPT TO:<you@far.example>" DATA "Subject: ${subject}\\r\\n\\r\\nText.\\r\\n." QUIT; do say "$line"; reply; done'`,
      )

    /** Types the commands, and resolves with their output. */
    async function type(commands: readonly string[]): Promise<readonly string[]> {
      const said: string[] = []
      for (const command of commands) said.push(await machine.must(`cd /root && ${command} </dev/null`))
      return said
    }

    test('the machine has a Postfix with a smarthost, a key of root, and mail that waits', async () => {
      await machine.must(`apt-get install --yes --no-install-recommends ${POSTFIX}/*.deb`)
      const files = { 'main.cf': MAIN_CF, generic: 'app@corp.example relay@corp.example\n', sasl_passwd: '[127.0.0.1]:2526 relay:secret\n' }
      for (const [name, text] of Object.entries(files)) await machine.must(`cat > /etc/postfix/${name} <<'EOF'\n${text}EOF`)
      await machine.must(
        'umask 077 && chmod 600 /etc/postfix/sasl_passwd && mkdir -p /etc/letsencrypt/live/mx && openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj /CN=mx.corp.example -keyout /etc/letsencrypt/live/mx/privkey.pem -out /etc/letsencrypt/live/mx/fullchain.pem 2>/dev/null && chmod 644 /etc/letsencrypt/live/mx/fullchain.pem',
      )
      await machine.must('systemctl enable postfix && systemctl restart postfix')
      await machine.until(async () => (await greeting(25)).includes('Postfix'))
      expect(await submit('waits')).toContain('250 2.0.0 Ok: queued')
      await machine.until(async () => (await machine.must('mailq')).includes('Connection refused'))
      await machine.must('apt-get install --yes --no-install-recommends /root/deb/deferd_*.deb </dev/null')
    })

    test('the steps of the page fail nowhere, and the keys of root are named while Postfix runs', async () => {
      const [stop = '', dryRun = '', stopPostfix = '', ...rest] = typed('Steps')
      expect([stop, dryRun, stopPostfix]).toEqual([
        'sudo systemctl disable --now deferd',
        'sudo deferd import postfix --dry-run',
        'sudo systemctl disable --now postfix',
      ])
      const [, plan = ''] = await type([stop, dryRun])
      expect(plan).toContain('# /etc/letsencrypt/live/mx/privkey.pem is copied to /etc/deferd/privkey.pem, as the daemon may not read it')
      expect(plan).toContain('# /etc/letsencrypt/live/mx/fullchain.pem is copied to /etc/deferd/fullchain.pem')
      expect(await greeting(25)).toContain('Postfix')
      const commands = rest.slice(0, rest.indexOf('sudo deferd status') + 1)
      expect(commands).toHaveLength(5)
      const [, taken, checked, , listed] = await type([stopPostfix, ...commands])
      expect(taken).toContain('1 message with 1 recipient taken over')
      expect(checked).toMatch(/^ok {6}user +deferd \(id \d+\)/m)
      expect(checked).not.toMatch(/^error/m)
      expect(listed).toContain('you@far.example')
    })

    test('mail flows, with TLS, to the smarthost', async () => {
      await machine.must(
        'systemd-run --unit=sink --property=WorkingDirectory=/root /usr/bin/deferd sink --listen 127.0.0.1:2526 --keep /root/received',
      )
      await machine.until(async () => (await machine.run('bash -c "exec 3<>/dev/tcp/127.0.0.1/2526"')).code === 0)
      await machine.must('deferd queue flush --all')
      await machine.until(async () => (await greeting(25)).startsWith('220 mx.corp.example ESMTP'))
      expect(await submit('is new')).toContain('250 2.0.0')
      await machine.until(async () => /Subject: waits/.test(await received()) && /Subject: is new/.test(await received()))
      expect(await machine.must('openssl s_client -starttls smtp -connect 127.0.0.1:25 </dev/null 2>/dev/null')).toContain(
        'CN = mx.corp.example',
      )
    })

    test('a refused reload is an error of systemctl, and a start that cannot succeed is not repeated', async () => {
      await machine.must('systemctl reload deferd')
      await machine.must('chown root /etc/deferd/privkey.pem')
      const refused = await machine.run('systemctl reload deferd')
      expect(refused.code).not.toBe(0)
      expect(await machine.must('journalctl --unit=deferd --lines=20 --output=cat')).toContain('deferd: /etc/deferd/deferd.toml:')
      expect((await machine.run('deferd check')).stdout).toContain('cannot read /etc/deferd/privkey.pem: EACCES')
      expect(await greeting(25)).toMatch(/^220 /)
      expect((await machine.run('systemctl restart deferd')).code).not.toBe(0)
      await machine.must('sleep 5')
      expect(await machine.must('systemctl show --property=Result,NRestarts,ExecMainStatus deferd')).toMatch(
        /(?=[^]*NRestarts=0)(?=[^]*ExecMainStatus=78)/,
      )
      await machine.must('chown deferd /etc/deferd/privkey.pem && systemctl start deferd')
    })

    test('afterwards Postfix is removed with its files, and mail flows on', async () => {
      const commands = typed('Afterwards')
      expect(commands.slice(-2)).toEqual([`sudo apt install ./deb/deferd-mta_${VERSION}_all.deb`, 'sudo apt purge postfix'])
      await type(commands.map((command) => command.replace('sudo apt ', 'sudo apt --yes --no-install-recommends ')))
      expect((await machine.run('ls /etc/postfix')).stdout).toBe('')
      await machine.until(async () => (await greeting(25)).startsWith('220 mx.corp.example ESMTP'))
      expect(await submit('is last')).toContain('250 2.0.0')
      await machine.until(async () => (await received()).includes('Subject: is last'))
      expect((await received()).match(/Subject: waits/g)).toHaveLength(1)
      await machine.must('deferd check && deferd reload')
    })
  },
  6 * MINUTES,
)

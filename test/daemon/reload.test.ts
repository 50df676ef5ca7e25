/** A reload applies listeners, certificate and HTTP port, or nothing; the log of the process is opened again. */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, fstatSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { createTransport } from 'nodemailer'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isJournal } from '../../src/cli/process-log.ts'
import { configFrom } from '../../src/config/load.ts'
import { ToldAddresses } from '../../src/mail/told-addresses.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { openLog } from '../../src/telemetry/log.ts'
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts'
import { Events } from '../../src/telemetry/events.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { portBelowEphemeral } from '../support/ports.ts'

let home: string
const daemons: Daemon[] = []
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'deferd-reload-'))
})
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.stop()
  rmSync(home, { recursive: true, force: true })
})

const configured = (values: Readonly<Record<string, unknown>>) =>
  configFrom({ queue_directory: join(home, 'queue'), relayhost: '[127.0.0.1]:9', ...values }, 'relay.example')

interface Started {
  readonly daemon: Daemon
  readonly notes: readonly string[]
  /** Senders of accepted mail. */
  readonly senders: readonly string[]
}

async function started(values: Readonly<Record<string, unknown>>): Promise<Started> {
  const notes: string[] = []
  const senders: string[] = []
  const events = new Events(() => Date.now())
  events.listen((event) => void (event.kind === 'note' && notes.push(event.text)))
  events.listen((event) => void (event.kind === 'accepted' && senders.push(event.message.sender)))
  const daemon = await startDaemon({ loaded: configured(values), events })
  daemons.push(daemon)
  return { daemon, notes, senders }
}

/** The first line of a server; the code of the error when it cannot be reached. */
const greeting = (port: number, command = ''): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => void (command === '' || socket.write(command)))
    socket.once('data', (text) => {
      socket.destroy()
      resolve(String(text).split('\r\n', 1)[0] ?? '')
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })

describe('a reload', () => {
  test('opens added listeners, closes removed ones, and keeps the others', async () => {
    const [one, two, three] = [await portBelowEphemeral(), await portBelowEphemeral(), await portBelowEphemeral()]
    const { daemon } = await started({ smtpd_listen: [`127.0.0.1:${one}`, `127.0.0.1:${two}`] })
    await daemon.reload(configured({ smtpd_listen: [`127.0.0.1:${two}`, `127.0.0.1:${three}`] }))
    expect(daemon.listeners.map(({ port }) => port)).toEqual([two, three])
    expect(await greeting(one)).toBe('ECONNREFUSED')
    for (const port of [two, three]) expect(await greeting(port)).toMatch(/^220 relay\.example/)
  })

  test('reads the files of lookup tables again, and keeps the old tables when one cannot be read', async () => {
    const file = join(home, 'canonical')
    writeFileSync(file, 'app@us.test service@us.test\n')
    const values = { smtpd_listen: '127.0.0.1:0', canonical_maps: `texthash:${file}`, transport_maps: { '*': 'smtp:[127.0.0.1]:1' } }
    const { daemon, notes, senders } = await started(values)
    const submit = () => createTransport({ port: daemon.listeners[0]?.port ?? 0 }).sendMail({ from: 'app@us.test', to: 'ann@far.test' })
    await submit()
    writeFileSync(file, 'app@us.test other@us.test\nmalformed\n')
    await daemon.reload(configured(values))
    await submit()
    expect(senders).toEqual(['service@us.test', 'other@us.test'])
    expect(notes).toContainEqual(expect.stringMatching(/^canonical_maps: .*canonical, line 2: expected a key/))
    rmSync(file)
    await expect(daemon.reload(configured(values))).rejects.toThrow(`canonical_maps: cannot read ${file}: ENOENT`)
  })

  test('changes how the log and events tell addresses', async () => {
    const values = { smtpd_listen: '127.0.0.1:0', log_addresses: 'hashed', transport_maps: { '*': 'smtp:[127.0.0.1]:1' } }
    const [addresses, events] = [new ToldAddresses('hashed'), new Events(() => Date.now())]
    let text = ''
    const write = (written: string) => (text += written)
    const log = openLog({ format: 'json', syslogName: 'deferd', host: 'relay', pid: 1, clock: systemClock, write, addresses })
    events.listen(log.listen)
    const file = join(home, 'events')
    const daemon = await startDaemon({ loaded: configured({ ...values, events: { own: { to: `file:${file}` } } }), events, addresses })
    daemons.push(daemon)
    const acceptedFrom = async (log_addresses: string): Promise<readonly unknown[]> => {
      text = ''
      const loaded = configured({ ...values, log_addresses, events: { own: { to: `file:${file}` } } })
      await daemon.reload(loaded)
      const id = `<${log_addresses}@us.test>`
      await createTransport({ port: daemon.listeners[0]?.port ?? 0 }).sendMail({ from: 'app@us.test', to: 'ann@far.test', messageId: id })
      log.flush()
      const linesOf = (all: string) => all.split('\n').filter((line) => line.includes(id) && line.includes('accepted'))
      let sent: readonly string[] = []
      while (sent.length === 0) {
        await new Promise((resolve) => setTimeout(resolve, 20))
        sent = existsSync(file) ? linesOf(readFileSync(file, 'utf8')) : []
      }
      return [...linesOf(text), ...sent].map((line) => {
        const read = JSON.parse(line) as { readonly sender?: string; readonly data?: { readonly sender: string } }
        return read.sender ?? read.data?.sender
      })
    }
    const [hashed, domain] = [expect.stringMatching(/^erased-[0-9a-f]{8}$/) as unknown, '***@us.test']
    expect(await acceptedFrom('hashed')).toEqual([hashed, hashed])
    expect(await acceptedFrom('domain')).toEqual([domain, domain])
    expect(await acceptedFrom('full')).toEqual(['app@us.test', 'app@us.test'])
  })

  test('starts TLS with a certificate that was not there before, and closes /metrics', async () => {
    const [smtp, http] = [await portBelowEphemeral(), await portBelowEphemeral()]
    const listeners = { smtpd_listen: `127.0.0.1:${smtp}` }
    const { daemon } = await started({ ...listeners, http_listen: `127.0.0.1:${http}` })
    expect(await greeting(http, 'GET /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200/)
    const [cert, key] = [join(home, 'cert.pem'), join(home, 'key.pem')]
    writeFileSync(cert, CERTIFICATE)
    writeFileSync(key, KEY, { mode: 0o600 })
    const wrapped = { address: `127.0.0.1:${http}`, tls: 'wrapper' }
    // The port of HTTP is free for SMTP in the same reload.
    await daemon.reload(configured({ ...listeners, smtpd: [wrapped], smtpd_tls_cert_file: cert, smtpd_tls_key_file: key }))
    expect(daemon.http).toBeNull()
    const subject = await new Promise((resolve) => {
      const socket = connectTls({ port: http, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        resolve(socket.getPeerX509Certificate()?.fingerprint256)
        socket.destroy()
      })
    })
    expect(subject).toMatch(/^[0-9A-F:]{95}$/)
  })

  test('with a port in use changes nothing and names the parameter', async () => {
    const [one, two] = [await portBelowEphemeral(), await portBelowEphemeral()]
    const { daemon: other } = await started({ queue_directory: join(home, 'other'), smtpd_listen: `127.0.0.1:${two}` })
    const { daemon } = await started({ smtpd_listen: `127.0.0.1:${one}` })
    const changed = configured({ smtpd_listen: `127.0.0.1:${two}`, http_listen: '127.0.0.1:0', smtpd_banner: 'changed' })
    await expect(daemon.reload(changed)).rejects.toThrow(
      `smtpd_listen: cannot listen on 127.0.0.1:${two}: another process has this port: stop it, or name another port (EADDRINUSE)`,
    )
    expect(daemon.http).toBeNull()
    expect(await greeting(one)).toMatch(/^220 relay\.example ESMTP/)
    expect(other.listeners).toHaveLength(1)
  })

  test('names what needs a restart', async () => {
    const { daemon, notes } = await started({ smtpd_listen: '*:0', http_listen: '*:0', inet_protocols: 'ipv4', node_name: 'mx1' })
    expect([daemon.listeners[0]?.address, daemon.http?.replace(/:\d+$/, '')]).toEqual(['0.0.0.0', '0.0.0.0'])
    const changed = {
      smtpd_listen: '*:0',
      http_listen: '*:0',
      inet_protocols: 'all',
      queue_directory: join(home, 'elsewhere'),
      node_name: 'other',
    }
    await daemon.reload(configured(changed))
    expect(notes).toContain(`reload: queue_directory stays ${join(home, 'queue')}: restart deferd to change it`)
    expect(notes).toContain('reload: node_name stays mx1: restart deferd to change it')
    expect(notes).toContain('reload: open listeners keep inet_protocols = ipv4: restart deferd to change it')
    expect(daemon.listeners[0]?.address).toBe('0.0.0.0')
  })
})

describe('the log of the process', () => {
  const settings = () => ['-o', `queue_directory=${join(home, 'queue')}`, '-o', 'smtpd_listen=127.0.0.1:0', '-o', 'relayhost=[127.0.0.1]:9']
  const deferd = join(import.meta.dirname, '../../bin/deferd.js')
  const until = async (met: () => boolean) => {
    while (!met()) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const textOf = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '')

  test('has no time and no host in the journal, and SIGHUP opens log_file again', async () => {
    const [journal, file, rotated] = [join(home, 'journal'), join(home, 'mail.log'), join(home, 'mail.log.1')]
    const fd = openSync(journal, 'a')
    const { dev, ino } = fstatSync(fd)
    const config = join(home, 'deferd.toml')
    writeFileSync(config, '')
    const env = { ...process.env, JOURNAL_STREAM: `${dev}:${ino}`, DEFERD_CONFIG: config }
    const child = spawn(process.execPath, [deferd, 'start', ...settings()], { stdio: ['ignore', 'pipe', fd], env })
    closeSync(fd)
    const ended = new Promise<number | null>((resolve) => void child.once('close', resolve))
    let out = ''
    child.stdout?.on('data', (text) => (out += String(text)))
    await until(() => out.includes('listens on'))
    writeFileSync(config, `log_file = "${file}"\n`)
    child.kill('SIGHUP')
    await until(() => textOf(journal).includes('new configuration in effect') && existsSync(file))
    expect(textOf(journal)).toMatch(/^deferd\/master\[\d+\]: reload: new configuration in effect/m)
    renameSync(file, rotated)
    child.kill('SIGHUP')
    await until(() => textOf(file).includes('new configuration in effect'))
    expect(textOf(file)).toMatch(/^\w{3} [ \d]\d [\d:]{8} \S+ deferd\/master\[\d+\]: /)
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
  })

  test('the journal is recognized by device and inode', () => {
    const fd = openSync(join(home, 'file'), 'w')
    const { dev, ino } = fstatSync(fd)
    expect([isJournal(`${dev}:${ino}`, fd), isJournal(`${dev}:${ino + 1}`, fd), isJournal(undefined, fd)]).toEqual([true, false, false])
    closeSync(fd)
  })
})

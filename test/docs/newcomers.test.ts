/**
 * Newcomers run only fenced blocks of the pages, in their order. A block that needs anything that the pages do not say fails
 * here. Every command of the pages is run by a newcomer, or is in the list of those left out.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { createTransport } from 'nodemailer'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { blocksOf, blockWith } from '../support/fenced-blocks.ts'
import { commandsIn, leftOut, Newcomer } from '../support/newcomer.ts'
import { portBelowEphemeral } from '../support/ports.ts'

const OPERATIONS = 'docs/operations.md'
const M365 = 'docs/microsoft-365.md'
const SECONDS = 'docs/failures-in-seconds.md'
const SETTINGS = 'docs/choosing-retry-settings.md'

/** Commands that newcomers have run, as on the pages. */
const ran = new Set<string>()

let newcomer: Newcomer
beforeEach(async () => {
  newcomer = new Newcomer(ran, await portBelowEphemeral())
})
afterEach(() => newcomer.stop())

/** Line of the daemon after which it takes mail. */
const READY = 'queue directory:'

const smarthost = blockWith(OPERATIONS, 'relayhost = ').text

/** Sends a mail with the arguments of a command of curl, as curl does, which a machine may lack. */
async function print(curl: string, { port, mail }: { readonly port: number; readonly mail: string }): Promise<void> {
  const argument = (name: string): string => new RegExp(`--${name} (?:'([^']*)'|(\\S+))`).exec(curl)?.slice(1).join('') ?? ''
  expect(curl).toMatch(/ --ssl-reqd --insecure .*--upload-file scan\.txt smtp:\/\/127\.0\.0\.1:5587$/)
  const [user = '', pass = ''] = argument('user').split(':')
  const transport = createTransport({ port, requireTLS: true, tls: { rejectUnauthorized: false }, auth: { user, pass } })
  await transport.sendMail({ envelope: { from: argument('mail-from'), to: argument('mail-rcpt') }, raw: mail })
}

describe('newcomers', () => {
  test('a developer with five minutes sees and understands the first deferred mail', async () => {
    const start = blockWith('README.md', 'npm start').text.trim()
    await newcomer.start(start, READY)
    const [send = '', ...next] = commandsIn(blockWith('README.md', 'sendmail -v').text)
    const sent = newcomer.run(send)
    // As on the page: sendmail -v prints the queue id.
    const id = /queued as (\w+)/.exec(sent.out + sent.err)?.[1] ?? ''
    const shown = next.map((command) => newcomer.run(command, { ID: id }).out)
    expect(shown[0]).toContain(id)
    expect(shown.join('\n')).toContain('you@[192.0.2.1]')
    // 8 s where the network answers for 192.0.2.1, 34 s where it drops the packets.
  }, 300_000)

  test('a sysadmin who replaces Postfix configures, checks, starts, submits, saves and restores', async () => {
    newcomer.configure(smarthost)
    newcomer.write('passwords', '[smtp.example.com]:587 relay@example.com:SECRET\n')
    newcomer.runBlock('deferd config -n')
    newcomer.write('password.txt', 'correct horse battery\n')
    newcomer.configure(blockWith(OPERATIONS, 'smtpd_sasl_users_file').text)
    expect(newcomer.runBlock(blockWith(OPERATIONS, 'user add').text).at(-1)?.out).toContain('app')
    newcomer.configure('queue_directory = "/var/lib/deferd"')
    await newcomer.start('deferd start', READY)
    const mailq = newcomer.runBlock(blockWith(OPERATIONS, 'deferd mailq').text).at(-1)?.out
    expect(mailq).toContain('ops@[192.0.2.1]')
    newcomer.runBlock(blockWith(OPERATIONS, 'deferd backup deferd-backup.db').text)
    newcomer.runBlock(blockWith(OPERATIONS, 'before-upgrade').text)
    await newcomer.stop()
    newcomer.runBlock(blockWith(OPERATIONS, 'deferd restore').text)
    newcomer.runBlock(blockWith('docs/move.md', 'deferd-new').text, { '/var/lib/deferd-new': `${newcomer.folder}/new` })
    newcomer.configure(`queue_directory = "${newcomer.folder}/new"`)
    expect(newcomer.runBlock(blockWith(OPERATIONS, 'apt remove deferd').text)[0]?.out).toContain('ops@[192.0.2.1]')
  })

  test('an on-call engineer finds the cause, suspends the destination, holds the sender and refuses a client', async () => {
    newcomer.configure('queue_directory = "/var/lib/deferd"')
    await newcomer.start('deferd start', READY)
    newcomer.runBlock(blockWith(OPERATIONS, 'deferd mailq').text)
    const [status, causes] = newcomer.runBlock(blockWith(OPERATIONS, 'deferd status').text)
    expect(status?.out).toContain('BALANCE')
    expect(causes?.code).toBe(0)
    const audit = newcomer.runBlock(blockWith(OPERATIONS, 'destination suspend 192.0.2.1').text).at(-1)?.out
    expect(audit).toContain('cron@example.com')
    const [, , entries] = newcomer.runBlock(blockWith('docs/access.md', 'deferd access add').text)
    expect(entries?.out).toContain('192.0.2')
  })

  test('an operator opens the page without configuration, and gives a program a token', async () => {
    await newcomer.start(blockWith('README.md', 'npm start').text.trim(), READY)
    await newcomer.start(blockWith('README.md', 'deferd page').text.trim(), 'Ctrl-C')
    const page = await newcomer.start(blockWith('docs/admin-http.md', 'deferd page').text.trim(), 'Ctrl-C')
    const [, origin = '', code = ''] = /^(http:\S+)\/login#(\S+)$/m.exec(page) ?? []
    const login = await fetch(`${origin}/login`, { method: 'POST', body: new URLSearchParams({ code }), redirect: 'manual' })
    const cookie = login.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
    expect(await (await fetch(`${origin}/api/v1/whoami`, { headers: { cookie } })).json()).toMatchObject({ role: 'admin' })
    const [added, listed] = newcomer.runBlock(blockWith('docs/admin-http.md', 'deferd token add').text)
    expect([added?.out, listed?.out]).toEqual([expect.stringMatching(/^dfd_\w{49}\n$/), expect.stringContaining('grafana: viewer')])
    expect(newcomer.runBlock(blockWith('docs/events.md', 'webhook add').text)[0]?.out).toMatch(/^whsec_/)
    const remote = newcomer.runBlock(blockWith(OPERATIONS, '--host').text, { 'https://relay.example.com:2580': origin })
    expect(remote).toMatchObject([{ code: 0 }, { code: 0 }, { code: 0 }])
  })

  test('an application developer tests with a sink', async () => {
    const [start = '', show = ''] = commandsIn(blockWith('docs/sink.md', 'deferd sink show 1').text)
    const ready = await newcomer.start(start, 'deferd sink listens on', ' --listen 127.0.0.1:0')
    const port = /listens on 127\.0\.0\.1:(\d+)/.exec(ready)?.[1] ?? ''
    newcomer.run(`node -e "import('nodemailer').then(({ createTransport }) =>
      createTransport({ port: ${port} }).sendMail({ from: 'a@x.example', to: 'b@y.example', subject: 'shown' }))"`)
    expect(newcomer.run(show).out).toContain('Subject: shown')
  })

  test('an application meets deferral, duplicate, warning and returned mail within half a minute', async () => {
    const ports = { 2525: await portBelowEphemeral(), 2526: await portBelowEphemeral() }
    const onPorts = (text: string) => text.replaceAll(/\b252[56]\b/g, (port) => String(ports[port as '2525' | '2526']))
    newcomer.write('deferd.toml', `smtpd_listen = ["127.0.0.1:2525"]\n${blockWith(SECONDS, 'relayhost').text}`)
    newcomer.write('app.mjs', onPorts(blockWith(SECONDS, 'nodemailer').text))
    newcomer.write('app.py', onPorts(blockWith(SECONDS, 'smtplib').text))
    newcomer.write('deferd.toml', onPorts(newcomer.read('deferd.toml')))
    // A checkout has no deferd in its node_modules.
    const script = blockWith(SECONDS, 'sink.jsonl')
      .text.replaceAll('node_modules/.bin/deferd', 'deferd')
      .replace('deferd sink --json', `deferd sink --listen 127.0.0.1:${ports[2526]}`)
    expect(script).toContain('npm test')
    const fullTwice = "until [ $(grep -c 'Delayed Mail\\|Undelivered Mail' received/*.eml | grep -c ':[1-9]') -ge 6 ]; do sleep 0.5; done"
    newcomer.write('ci.sh', script.replace('npm test', `node app.mjs && python3 app.py && ${fullTwice}`))
    newcomer.run('unset DEFERD_SMTPD_LISTEN; bash ci.sh')
    const events = newcomer
      .read('sink.jsonl')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly event: string; readonly sender?: string; readonly recipients?: readonly string[] })
    const kept = events.filter(({ event, sender }) => event === 'message' && sender !== '').flatMap(({ recipients = [] }) => recipients)
    const copies = (address: string): number => kept.filter((one) => one === address).length
    const locals = ['ann', 'greylist+6s', 'first-1+drop-after-dot', 'full', '550']
    // The mail from Python is not the first one to first-1+…, and is taken once.
    expect(locals.map((local) => copies(`${local}@any.example`))).toEqual([2, 2, 3, 0, 0])
    // The processes have ended with the script, so that the ports are free.
    expect(events.at(-1)?.event).toBe('summary')
  })

  test('an administrator rehearses the way of a printer to Microsoft 365', async () => {
    const [sink = ''] = commandsIn(blockWith(M365, 'deferd sink --oauth').text)
    const shown = await newcomer.start(sink, 'approves the code', ' --listen 127.0.0.1:0 --oauth-listen 127.0.0.1:0')
    const pasted = /^relayhost[^]*?^ca_file = .*$/m.exec(shown)?.[0] ?? ''
    const port = await portBelowEphemeral()
    const [first, last] = ['"./m365-queue"', '"127.0.0.1:5587"'].map((part) => blockWith(M365, part).text)
    newcomer.configure(`${first}\n${pasted}\n\n${last?.replace('5587', String(port))}`)
    newcomer.write('relay.pem', `${CERTIFICATE}${KEY}`)
    const preparation = commandsIn(blockWith(M365, 'deferd user add scanner\n').text)
    newcomer.write('password.txt', 'correct horse battery\n')
    newcomer.runBlock(blockWith(M365, 'user add scanner <').text.replaceAll(/^(?:openssl|cat|rm) .*$/gm, ''))
    // The first two make the certificate.
    newcomer.runBlock(preparation.slice(2, -1).join('\n'))
    await newcomer.start(preparation.at(-1) ?? '', READY)
    const commands = commandsIn(blockWith(M365, 'sink show --keep').text)
    newcomer.run(commands.find((command) => command.includes('sendmail -v')) ?? '')
    await expect.poll(() => newcomer.has('m365-sink/1.eml'), { timeout: 30_000 }).toBe(true)
    newcomer.run(commands.find((command) => command.endsWith('> scan.txt')) ?? '')
    const printer = commands.find((command) => command.startsWith('curl ')) ?? ''
    await print(printer, { port, mail: newcomer.read('scan.txt') })
    await expect.poll(() => newcomer.has('m365-sink/2.eml'), { timeout: 30_000 }).toBe(true)
    const [history, scanned] = commands.slice(-2).map((command) => newcomer.run(command).out)
    expect(history?.match(/\bdelivered\b/g)).toHaveLength(2)
    expect(newcomer.runBlock(blockWith(M365, '| deferd sendmail -v you').text).at(-1)?.out).toMatch(
      /^sink +microsoft +client_credentials .* for 59m$/m,
    )
    const live = commandsIn(blockWith(M365, 'sh contrib/oauth/live-tenant.sh').text)[0] ?? ''
    const report = newcomer.run(live, { '--oauth m365': '--oauth sink', 'relay@contoso.example': 'app@contoso.example' }).out
    expect(report).toMatch(/^# All steps have succeeded\.$[^]*To look for: the mail at you@example\.org, From: app@contoso\.example/m)
    expect(report).not.toMatch(/eyJ|Bearer/)
    expect(report).not.toContain(newcomer.read('m365-sink/client-secret').trim())
    expect(scanned).toMatch(/^From: app@contoso\.example$[^]*^Subject: scanned$/m)
  })

  test('a reliability engineer compares settings', () => {
    const commands = blocksOf(SETTINGS).flatMap(({ text }) =>
      commandsIn(text).filter((command) => command.startsWith('deferd simulate schedule')),
    )
    const outputs = commands.map((command) => newcomer.run(command).out)
    expect(outputs.length).toBeGreaterThan(2)
    expect(outputs.filter((out) => out.includes('maximal_backoff_time = '))).not.toEqual([])
  })

  test('an operator makes DKIM keys and uses the table that is printed', () => {
    const [generate = ''] = commandsIn(blockWith('docs/dkim.md', 'dkim generate').text)
    const { out } = newcomer.run(generate)
    newcomer.configure(out.slice(out.indexOf('[dkim.')))
    expect(newcomer.run('deferd dkim show').out).toMatch(/rsa-sha256, 2048 bits, signs[^]*ed25519-sha256, 256 bits, signs/)
  })

  test('a contributor finds every command of the pages among the scripts', () => {
    const scripts = newcomer.run('npm run').out
    const named = ['README.md', 'CONTRIBUTING.md', 'RELIABILITY.md', 'docs/bench.md'].flatMap((page) =>
      blocksOf(page).flatMap(({ text }) => [...text.matchAll(/\bnpm (?:run )?(start|test|[\w:]+)\b/g)].map((match) => match[1] ?? '')),
    )
    const missing = named.filter((name) => !['ci', 'run'].includes(name) && !new RegExp(`^ {2}${name}$`, 'm').test(scripts))
    expect(missing).toEqual([])
  })
})

/** A line of a block that is a command, not output or a template. */
const isCommand = (line: string): boolean => /^(?:deferd|npm|npx|node|sudo|printf|journalctl|exec|[A-Z_]+=\S+ \w+)\b/.test(line)

test('every command of the pages is run by a newcomer, or is left out for a reason', () => {
  const docs = readdirSync(new URL('../../docs', import.meta.url)).filter((name) => name.endsWith('.md') && name !== 'commands.md')
  const pages = ['README.md', 'CONTRIBUTING.md', 'RELIABILITY.md', 'contrib/README.md', ...docs.map((name) => `docs/${name}`)]
  const forgotten = pages.flatMap((page) =>
    blocksOf(page)
      .filter(({ language }) => language === '' || language === 'sh')
      .flatMap(({ text, line }) => commandsIn(text).map((command) => ({ command, at: `${page}:${line}` })))
      .filter(({ command }) => isCommand(command) && !ran.has(command) && !leftOut(command))
      .map(({ command, at }) => `${at}: ${command}`),
  )
  expect(forgotten).toEqual([])
})

test('links between pages lead to existing headings', () => {
  const headings = (page: string) =>
    new Set(
      [...readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8').matchAll(/^#+ (.+)$/gm)].map((match) =>
        (match[1] ?? '')
          .toLowerCase()
          .replaceAll(/[^\w\s-]/g, '')
          .replaceAll(' ', '-'),
      ),
    )
  const docs = readdirSync(new URL('../../docs', import.meta.url)).filter((name) => name.endsWith('.md'))
  const pages = [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'RELIABILITY.md',
    'contrib/README.md',
    ...docs.map((name) => `docs/${name}`),
  ]
  const broken = pages.flatMap((page) =>
    [...readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8').matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].flatMap(
      (match) => {
        const target = match[1] === '' ? page : posix.join(posix.dirname(page), match[1] ?? '')
        if (!existsSync(new URL(`../../${target}`, import.meta.url))) return [`${page}: ${match[0]}`]
        return match[2] === undefined || headings(target).has(match[2]) ? [] : [`${page}: ${match[0]}`]
      },
    ),
  )
  expect(broken).toEqual([])
})

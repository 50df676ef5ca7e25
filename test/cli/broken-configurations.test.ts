/** `deferd check` and `deferd start` agree about every broken configuration: the same sentences, the same exit code. */
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { RunningDaemon, Shell } from '../../src/cli/shell/shell.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { Operator, type Terminal } from '../support/operator.ts'
import { DaemonFolder } from '../support/started-daemon.ts'
import { unreleasedQueue } from '../store/sqlite/folders.ts'
import { Events } from '../../src/telemetry/events.ts'

const OTHER_KEY = String(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }))

const isRoot = process.getuid?.() === 0

let operator: Operator
beforeEach(() => {
  operator = new Operator()
  chmodSync(operator.directory, 0o700)
})
afterEach(() => operator.leave())

/** The daemon in this process, with the warnings of its log in `warnings`. */
const startWith =
  (warnings: string[]): Shell['startDaemon'] =>
  async (loaded, _readAgain, user): Promise<RunningDaemon> => {
    const events = new Events(() => Date.now())
    events.listen((event) => event.kind === 'note' && event.level === 'warning' && warnings.push(event.text))
    const daemon = await startDaemon({ loaded, events, user })
    return { described: () => daemon, firstAccepted: new Promise(() => undefined), reload: () => undefined, stop: () => daemon.stop() }
  }
const start = startWith([])

const path = (name: string): string => join(operator.directory, name)
const put = (name: string, text: string): string => {
  writeFileSync(path(name), text, { mode: 0o600 })
  return path(name)
}

interface Verdict {
  readonly code: number
  readonly sentences: readonly string[]
}

const linesOf = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^deferd: /, ''))

async function verdictOfStart(argv: readonly string[], terminal: Terminal): Promise<Verdict> {
  const { code, err } = await operator.run(['start', ...argv], { ...terminal, start })
  return { code, sentences: linesOf(err) }
}

async function verdictOfCheck(argv: readonly string[], terminal: Terminal): Promise<Verdict> {
  const { code, out, err } = await operator.run(['check', '--json', ...argv], terminal)
  const findings = linesOf(out).map((line) => JSON.parse(line) as { verdict: string; text: string })
  return { code, sentences: [...linesOf(err), ...findings.filter(({ verdict }) => verdict === 'error').map(({ text }) => text)] }
}

/** The lines of a configuration file; further arguments; variables. Files and folders are made beforehand. */
interface Broken {
  readonly toml?: string
  readonly argv?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const pems = () => ({ cert: put('cert.pem', CERTIFICATE), key: put('key.pem', KEY), garbage: put('garbage.pem', 'no certificate') })
const tls = (cert: string, key: string) =>
  `smtpd_tls_security_level = "may"\nsmtpd_tls_cert_file = "${cert}"\nsmtpd_tls_key_file = "${key}"`
const clientTls = (cert: string, key: string) => `smtp_tls_cert_file = "${cert}"\nsmtp_tls_key_file = "${key}"`
const at = (directory: string): Broken => ({ env: { DEFERD_QUEUE_DIRECTORY: directory } })

/** Makes a folder for the queue, changed by `change`. */
function folder(change: (folder: string) => void): Broken {
  const made = path('queue')
  mkdirSync(made, { mode: 0o700 })
  change(made)
  return at(made)
}

function newerQueue(): Broken {
  return folder((queue) => {
    const db = new Database(join(queue, 'queue.db'))
    db.pragma('journal_mode = wal')
    db.pragma('application_id = 0x64666572')
    db.pragma('user_version = 999')
    db.close()
  })
}

/** Name, configuration, and the sentence of both commands. The exit code is 78. */
const BROKEN: [name: string, broken: () => Broken, sentence: RegExp][] = [
  // the configuration itself
  ['a syntax error', () => ({ toml: 'myhostname = unquoted' }), /deferd\.toml:1: /],
  ['a key given twice', () => ({ toml: 'mail_name = "a"\nmail_name = "b"' }), /deferd\.toml:2: /],
  ['an unknown parameter', () => ({ toml: 'relay_host = "x"' }), /deferd\.toml:1: unknown parameter relay_host; did you mean relayhost/],
  ['a parameter of Postfix', () => ({ toml: 'smtp_use_tls = true' }), /write smtp_tls_security_level = "may"$/],
  ['a table of Postfix', () => ({ toml: 'smtp_sasl_password_maps = "hash:/etc/sasl"' }), /does not read hash: tables/],
  ['a malformed network', () => ({ toml: 'mynetworks = ["10.0.0.0/99"]' }), /deferd\.toml:1: mynetworks: /],
  ['a malformed relayhost', () => ({ toml: 'relayhost = "::"' }), /relayhost: "::" is not a next hop/],
  ['a host name with blanks', () => ({ argv: ['-o', 'myhostname=relay example com'] }), /is not a domain name/],
  ['a malformed listener', () => ({ toml: 'smtpd_listen = "localhost"' }), /smtpd_listen: expected an address and a port/],
  ['a malformed HTTP address', () => ({ toml: 'http_listen = "x:99999"' }), /http_listen: expected an address and a port/],
  [
    'a malformed [[smtpd]] table',
    () => ({ toml: '[[smtpd]]\naddress = "[::1]:0"\ntls = "yes"' }),
    /deferd\.toml:3: \[\[smtpd\]\] tls: expected one of/,
  ],
  [
    'a parameter of all listeners',
    () => ({ toml: '[[smtpd]]\nsmtpd_process_limit = 9\naddress = "[::1]:0"' }),
    /:2: smtpd_process_limit is a/,
  ],
  ['a minimum above the maximum', () => ({ toml: 'minimal_backoff_time = "9h"' }), /minimal_backoff_time is above/],
  ['an unknown retry policy', () => ({ toml: 'retry_backoff = "sometimes"' }), /retry_backoff: /],
  ['a malformed time', () => ({ toml: 'smtp_connect_timeout = "soon"' }), /smtp_connect_timeout: expected a time/],
  ['a malformed size', () => ({ toml: 'message_size_limit = "big"' }), /message_size_limit: expected a size/],
  ['a malformed TLS policy', () => ({ toml: 'smtp_tls_policy_maps = ["a.example sure"]' }), /smtp_tls_policy_maps: /],
  ['an unknown transport', () => ({ toml: '[transport_maps]\n"a.example" = "pigeon:coop"' }), /names no transport/],
  [
    'a table of no destination',
    () => ({ toml: '[destination."relay:[a.example]"]\n' }),
    /deferd\.toml:1: destination\."relay:\[a\.example\]" is no recipient domain, \.parent or next hop: write "smtp:\[a\.example\]:25"$/,
  ],
  ['an unknown parameter of a destination', () => ({ toml: '[destination."a.example"]\nmail_name = "x"' }), /deferd\.toml:2: mail_name/],
  ['a circular reference', () => ({ toml: 'myorigin = "$myorigin"' }), /is a circular reference/],
  ['an unknown variable', () => ({ env: { DEFERD_RELAYHOSTS: 'x' } }), /environment: unknown parameter relayhosts/],
  ['an option without a value', () => ({ argv: ['-o', 'nonsense'] }), /-o: expected name=value/],
  ['a missing file of configuration', () => ({ argv: ['--config', path('nowhere.toml')] }), /nowhere\.toml: no such file/],
  ['a folder instead of the configuration', () => ({ argv: ['--config', operator.directory] }), /cannot be read: EISDIR/],
  // files
  [
    'missing templates',
    () => ({ toml: `\nbounce_template_file = "${path('none')}"` }),
    /deferd\.toml:2: bounce_template_file: cannot read/,
  ],
  ['malformed templates', () => ({ toml: `bounce_template_file = "${put('texts', 'nonsense')}"` }), /texts:1: /],
  ['TLS without a certificate', () => ({ toml: 'smtpd_tls_security_level = "may"' }), /there is no certificate$/],
  [
    'a missing access table of a listener',
    () => ({
      toml: `[[smtpd]]\naddress = "[::1]:0"\nsmtpd_client_restrictions = ["check_client_access texthash:${path('none')}"]`,
    }),
    /deferd\.toml:3: \[\[smtpd\]\] smtpd_client_restrictions: .*none/,
  ],
  [
    'a missing certificate of a listener',
    () => ({ toml: `[[smtpd]]\naddress = "[::1]:0"\ntls = "may"\nsmtpd_tls_cert_file = "${path('none')}"` }),
    /deferd\.toml:4: \[\[smtpd\]\] smtpd_tls_cert_file: cannot read/,
  ],
  ['a missing certificate', () => ({ toml: tls(path('none'), pems().key) }), /deferd\.toml:2: smtpd_tls_cert_file: cannot read/],
  ['a missing key', () => ({ toml: tls(pems().cert, path('none')) }), /deferd\.toml:3: smtpd_tls_key_file: cannot read/],
  ['a certificate that is none', () => ({ toml: tls(pems().garbage, pems().key) }), /are no certificate and its key/],
  ['the key of another certificate', () => ({ toml: tls(pems().cert, put('other.pem', OTHER_KEY)) }), /are no certificate and its key/],
  ['missing CA certificates', () => ({ toml: `smtp_tls_CAfile = "${path('none')}"` }), /deferd\.toml:1: smtp_tls_CAfile: cannot read/],
  ['CA certificates that are none', () => ({ toml: `smtp_tls_CAfile = "${pems().garbage}"` }), /smtp_tls_CAfile: .* has no certificate/],
  ['a missing client certificate', () => ({ toml: clientTls(path('none'), pems().key) }), /smtp_tls_cert_file: cannot read/],
  ['the client key of another certificate', () => ({ toml: clientTls(pems().cert, put('o.pem', OTHER_KEY)) }), /are no certificate and/],
  ['a client key without certificate', () => ({ toml: `smtp_tls_key_file = "${pems().key}"` }), /has no use without smtp_tls_cert_file/],
  ['missing passwords', () => ({ toml: `smtp_sasl_password_maps = "${path('none')}"` }), /smtp_sasl_password_maps: cannot read/],
  ['a folder of passwords', () => ({ toml: `smtp_sasl_password_maps = "${operator.directory}"` }), /smtp_sasl_password_maps: cannot read/],
  [
    'malformed passwords',
    () => ({ toml: `smtp_sasl_password_maps = "texthash:${put('pw', '# relay\n[a.example]:587\n')}"` }),
    /smtp_sasl_password_maps: .*pw line 2: expected NEXTHOP-OR-SENDER USER:PASSWORD$/,
  ],
  [
    'AUTH without users',
    () => ({ toml: `${tls(pems().cert, pems().key)}\nsmtpd_sasl_auth_enable = true` }),
    /deferd\.toml:4: smtpd_sasl_users/,
  ],
  ['a missing file of users', () => ({ toml: `smtpd_sasl_users_file = "${path('none')}"` }), /smtpd_sasl_users_file: cannot use/],
  ['malformed users', () => ({ toml: `smtpd_sasl_users_file = "${put('users', 'app nonsense')}"` }), /cannot use .*users: line 1: /],
  ['a log in a missing folder', () => ({ toml: `log_file = "${path('none/log')}"` }), /deferd\.toml:1: log_file: cannot write/],
  ['a folder as log', () => ({ toml: `log_file = "${operator.directory}"` }), /log_file: .* is a folder: name a file in it/],
  // the queue folder
  ['a file as queue folder', () => at(put('file', '')), /file as the queue folder: it is not a folder/],
  ['a queue folder below a file', () => at(join(put('file', ''), 'queue')), /file is not a folder: name another queue_directory/],
  ['a queue folder of all users', () => folder((queue) => chmodSync(queue, 0o777)), /other users can write to it: chmod go-w/],
  ['a link in the queue folder', () => folder((queue) => symlinkSync('/etc/hosts', join(queue, 'queue.db'))), /is a symbolic link/],
  ['a folder as queue file', () => folder((queue) => mkdirSync(join(queue, 'queue.db'))), /queue\.db is not a file: move it away/],
  ['a link to a missing folder', () => (symlinkSync(path('gone'), path('link')), at(path('link'))), /it is a link to a missing folder/],
  ['a path too long for a socket', () => at(join(operator.directory, 'q'.repeat(120))), /longer than the 107 bytes of a socket address/],
  ['a newer queue', newerQueue, /has version 999, but this deferd supports/],
  ['an unreleased queue', () => at(unreleasedQueue()), /was made by an unreleased deferd/],
  ['an unknown user', () => ({ argv: ['--user', 'no-such-user'] }), /there is no such user/],
]

const RELAY = ['-o', 'smtpd_listen=127.0.0.1:0', '-o', 'relayhost=[127.0.0.1]:9']

/** Arguments and variables of a configuration. `smtpd_listen` is not overridden where the configuration itself has it. */
function commandLine({ toml, argv = [], env = {} }: Broken): { readonly argv: readonly string[]; readonly terminal: Terminal } {
  const file = toml === undefined ? [] : ['--config', put('deferd.toml', toml)]
  const own = ['smtpd_listen', 'relayhost'].some((name) => toml?.includes(`${name} =`) === true)
  return { argv: [...file, ...(own ? [] : RELAY), ...argv], terminal: { env: { DEFERD_MYHOSTNAME: '', ...env } } }
}

describe('check and start agree:', () => {
  test.each(BROKEN)('%s', async (_name, broken, sentence) => {
    const { argv, terminal } = commandLine(broken())
    const check = await verdictOfCheck(argv, terminal)
    const started = await verdictOfStart(argv, terminal)
    expect(check).toEqual(started)
    expect(check.code).toBe(78)
    expect(check.sentences).toEqual([expect.stringMatching(sentence)])
  })

  test('about all problems of the files and of the folder in one pass', async () => {
    const toml = [
      `smtp_tls_CAfile = "${path('ca')}"`,
      `smtp_sasl_password_maps = "${path('passwords')}"`,
      `bounce_template_file = "${path('texts')}"`,
      `queue_directory = "${put('file', '')}"`,
    ].join('\n')
    const env = { DEFERD_QUEUE_DIRECTORY: './deferd-queue', DEFERD_MYHOSTNAME: 'relay.example' }
    const argv = ['--config', put('deferd.toml', toml), ...RELAY, '-o', `queue_directory=${path('file')}`]
    const [check, started] = [await verdictOfCheck(argv, { env }), await verdictOfStart(argv, { env })]
    expect(started.sentences.map((line) => /(?:toml:(\d)|-o): /.exec(line)?.[1])).toEqual(['1', '2', '3', undefined])
    expect({ ...check, sentences: check.sentences.toSorted() }).toEqual({ ...started, sentences: started.sentences.toSorted() })
  })

  test('about what is sound, and about what deserves a warning only', async () => {
    const open = put('passwords', '[127.0.0.1]:9 user:password\n')
    chmodSync(open, 0o644)
    for (const broken of [{}, { toml: `smtp_sasl_password_maps = "${open}"` }, at(path('missing/queue'))]) {
      const { argv, terminal } = commandLine(broken)
      expect(await verdictOfCheck(argv, terminal)).toEqual({ code: 0, sentences: [] })
      expect(await verdictOfStart(argv, terminal)).toEqual({ code: 0, sentences: [] })
    }
  })
})

describe('as processes', () => {
  let home: DaemonFolder
  beforeEach(() => {
    home = new DaemonFolder()
  })
  afterEach(() => home.close())

  const both = async (settings: Readonly<Record<string, string>>, options: { readonly uid?: number; readonly gid?: number } = {}) => {
    const [check, started] = await Promise.all([
      home.run(['check', '--json'], settings, options).ended,
      home.run(['start'], settings, options).ended,
    ])
    const findings = linesOf(check.out).map((line) => JSON.parse(line) as { verdict: string; text: string })
    const errors = [...linesOf(check.err), ...findings.filter(({ verdict }) => verdict === 'error').map(({ text }) => text)]
    // The log of the start is on standard error too.
    const sentences = started.err.split('\n').filter((line) => line.startsWith('deferd: '))
    expect({ code: check.code, errors }).toEqual({ code: started.code, errors: sentences.map((line) => line.replace('deferd: ', '')) })
    return errors
  }

  test('a missing certificate', async () => {
    expect(await both({ smtpd_tls_security_level: 'may' })).toEqual([expect.stringContaining('there is no certificate')])
  })

  test.runIf(isRoot)('folders that the user of the daemon cannot use', async () => {
    const nobody = { uid: 65_534, gid: 65_534 }
    chmodSync(tmpdir(), 0o755)
    chmodSync(home.path, 0o755)
    const queue = join(home.path, 'queue')
    expect(await both({}, nobody)).toEqual([expect.stringMatching(/cannot be created in .*: EACCES/)])
    mkdirSync(queue, { mode: 0o700 })
    chownSync(queue, nobody.uid, nobody.gid)
    writeFileSync(join(queue, 'queue.db'), '', { mode: 0o600 })
    expect(await both({}, nobody)).toEqual([expect.stringMatching(/queue\.db belongs to the user with id 0, .*: chown it$/)])
  })
})

test('start, check and config name the file in the current folder that root does not read', async () => {
  const { folder: file } = operator.defaultFiles
  writeFileSync(file, `queue_directory = "${path('queue')}"\nsmtpd_listen = "127.0.0.1:0"\nmail_name = "folder"`)
  const settings: Terminal = { env: { DEFERD_SMTPD_LISTEN: '127.0.0.1:0' } }
  const sentence = `${file} is not read, because root reads no file of the current folder by itself: give --config ${file}, or set DEFERD_CONFIG`
  const logged: string[] = []
  expect(await operator.run(['start'], { ...settings, start: startWith(logged) })).toMatchObject({ code: 0, err: '' })
  expect(logged).toContain(sentence)
  const check = await operator.run(['check'], settings)
  expect(check.code).toBe(0)
  expect(check.out.split('\n')[0]).toBe(`warning configuration              ${sentence}`)
  expect(await operator.run(['config', 'mail_name'], settings)).toMatchObject({
    out: 'mail_name = Deferd\n',
    err: `deferd: warning: ${sentence}\n`,
  })

  for (const terminal of [{ uid: 1000 }, { env: { ...settings.env, DEFERD_CONFIG: file } }]) {
    const { out, err } = await operator.run(['config', 'mail_name'], terminal)
    expect({ out, err }).toEqual({ out: 'mail_name = folder\n', err: '' })
    expect((await operator.run(['check'], terminal)).out).toMatch(
      /^ok      configuration              .*deferd\.toml, \d parameters given\n/,
    )
  }
})

test('check and start warn of a table of a next hop to which no route leads', async () => {
  const file = put(
    'deferd.toml',
    `queue_directory = "${path('queue')}"
smtpd_listen = "127.0.0.1:0"
relayhost = "[127.0.0.1]:2526"
[destination."[127.0.0.1]:2526"]
destination_concurrency_limit = 2
[destination."[127.0.0.1]:2527"]
destination_concurrency_limit = 2
`,
  )
  const logged: string[] = []
  const sentence =
    'destination."[127.0.0.1]:2527" applies to no mail, because no route of the configuration leads to this next hop: correct the heading or remove the table'
  const settings: Terminal = { env: { DEFERD_CONFIG: file } }
  expect(await operator.run(['start'], { ...settings, start: startWith(logged) })).toMatchObject({ code: 0, err: '' })
  expect(logged.filter((text) => text.startsWith('destination'))).toEqual([sentence])
  const { code, out } = await operator.run(['check'], settings)
  expect({ code, warnings: out.split('\n').filter((line) => line.includes('destination')) }).toEqual({
    code: 0,
    warnings: [`warning next hops                  ${sentence}`],
  })
})

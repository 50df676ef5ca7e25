import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { processShell } from '../../src/cli/process-shell.ts'
import { buildProgram } from '../../src/cli/program.ts'
import type { RunningDaemon } from '../../src/cli/shell/shell.ts'
import { DAY } from '../../src/system/clock.ts'
import { passwordMatches } from '../../src/access/users.ts'
import { queue } from '../conformance/mail.ts'
import { unreleasedQueue } from '../store/sqlite/folders.ts'
import { NOW, Operator } from '../support/operator.ts'

let operator: Operator
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => operator.leave())

const path = (name: string) => join(operator.directory, name)

describe('the command line', () => {
  test.each([
    [[]],
    [['queue']],
    [['nonsense']],
    [['queue', 'nonsense']],
    [['queue', 'list', '--nonsense']],
    [['queue', 'list', '--older-than', 'soon']],
    [['queue', 'list', '--queue', 'nowhere']],
    [['queue', 'show']],
    [['config', 'nonsense']],
    [['simulate', 'nonsense']],
    [['--config', '', 'config']],
    [['config', '-o', '']],
    [['destination', 'suspend', '']],
    [['queue', 'show', '']],
    [['queue', 'hold', 'x', '']],
    [['restore', '']],
    [['salvage', 'queue', '']],
    [['queue', 'list', '--tsv', '--json']],
    [['queue', 'shape', '--json', '--tsv']],
    [['destination', 'list', '--tsv', '--json']],
    [['history', 'list', '--tsv', '--json']],
    [['audit', '--tsv', '--json']],
    [['queue', 'list', '--status', 'x.y.z']],
    [['queue', 'delete', '--status', '9']],
    [['destination', 'suspend', '*']],
    [['help', 'queue', 'nonsense']],
    [['help', 'queue', 'list', 'nonsense']],
  ])('%j is a usage error: 64, on standard error', async (argv) => {
    const { code, out, err } = await operator.run(argv)
    expect({ code, out }).toEqual({ code: 64, out: '' })
    expect(err).not.toBe('')
  })

  test('an empty word is refused with its name, and nothing is changed', async () => {
    await operator.own((store) => queue(store, { at: NOW }))
    const moved = await operator.run(['queue', 'move', '--to', ''])
    expect(moved).toMatchObject({ code: 64, err: expect.stringMatching(/^deferd: value of option '--to <place>' is empty\n/) })
    const deleted = await operator.run(['queue', 'delete', '--reply', '', '--yes'])
    expect(deleted).toMatchObject({ code: 64, err: expect.stringMatching(/^deferd: value of option '--reply <text>' is empty\n/) })
    expect((await operator.run(['salvage', 'queue', ''])).err).toMatch(/^deferd: argument 'to' is empty\n/)
    expect(await operator.says('queue', 'list', '--count')).toBe('1\n')
  })

  test.each([[['--help']], [['queue', '--help']], [['queue', 'cat', '--help']], [['start', '-h']]])('%j prints help', async (argv) => {
    const { code, out, err } = await operator.run(argv)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^Usage: deferd/)
  })

  test('a misspelled name is answered with the nearest one', async () => {
    expect((await operator.run(['quue'])).err).toContain('Did you mean queue?')
    expect((await operator.run(['config', 'relay_host'])).err).toBe('deferd: unknown parameter relay_host; did you mean relayhost?\n')
  })

  test('help explains commands, parameters, and parameters of Postfix', async () => {
    expect(await operator.says('help')).toMatch(/^Usage: deferd /)
    expect(await operator.says('help', 'queue', 'list')).toMatch(/^Usage: deferd queue list /)
    expect(await operator.says('help', 'mailq')).toMatch(/^Usage: deferd mailq /)
    expect(await operator.says('help', 'minimal_backoff_time')).toMatch(/^minimal_backoff_time: .*\nDefault: 300s\nAllowed in /)
    expect(await operator.says('help', 'suppression', 'add')).toMatch(/^Usage: deferd suppression add /)
    expect(await operator.says('help', 'suppression')).toMatch(/^suppression: [^\n]*\nDefault: no\n\nUsage: deferd suppression /)
    expect(await operator.says('help', 'smtp_use_tls')).toContain('write smtp_tls_security_level')
    expect(await operator.run(['help', 'relay_host'])).toMatchObject({
      code: 64,
      out: '',
      err: 'deferd: there is no help on relay_host; did you mean relayhost?\n',
    })
  })

  test('help names the commands of a command', async () => {
    expect((await operator.run(['help', 'queue', 'lst'])).err).toBe('deferd: there is no help on queue lst; did you mean queue list?\n')
    expect((await operator.run(['help', 'mailq', 'x'])).err).toBe('deferd: there is no help on mailq x; deferd help mailq is all\n')
  })

  test('a configuration file that cannot be read is named, with a remedy', async () => {
    const { code, err } = await operator.run(['--config', operator.directory, 'config'])
    expect([code, err]).toEqual([78, expect.stringMatching(/: cannot be read: EISDIR: .*; name a file that you can read with --config\n$/)])
  })

  test('a bad configuration is reported in full by each command: 78', async () => {
    for (const argv of [['queue', 'list'], ['start'], ['mailq'], ['check']]) {
      const { code, err } = await operator.run([...argv, '-o', 'mynetworks=here', '-o', 'nonsense=1'])
      expect([code, err]).toEqual([78, expect.stringMatching(/^deferd: -o: unknown parameter nonsense\ndeferd: -o: mynetworks: [^\n]+\n$/)])
    }
  })

  test('a queue of an unreleased program is refused by every command, and left as it is: 78', async () => {
    const directory = unreleasedQueue()
    const contents = () => ['queue.db', 'queue.db-wal'].map((file) => readFileSync(join(directory, file), 'base64'))
    const before = contents()
    mkdirSync(join(directory, 'maildrop'))
    const env = { DEFERD_QUEUE_DIRECTORY: directory }
    const commands = [
      ['queue', 'list'],
      ['queue', 'flush', '--all'],
      ['destination', 'list'],
      ['backup', path('copy.db')],
      ['mailq'],
      ['postqueue', '-f'],
      ['sendmail', 'you@far.example'],
    ]
    for (const argv of commands) {
      const { code, err } = await operator.run(argv, { env, stdin: 'hello\n' })
      expect([argv[0], code, err]).toEqual([argv[0], 78, expect.stringMatching(/^[^\n]*was made by an unreleased deferd[^\n]*\n$/)])
    }
    const check = await operator.run(['check'], { env })
    expect([check.code, check.out]).toEqual([78, expect.stringMatching(/^error +queue +.*was made by an unreleased deferd/m)])
    expect(contents()).toEqual(before)
    expect(readdirSync(join(directory, 'maildrop'))).toEqual([])
  })

  test('options before the command apply, options after it take precedence', async () => {
    expect((await operator.run(['-o', 'mail_name=A', 'config', 'mail_name'])).out).toBe('mail_name = A\n')
    expect((await operator.run(['-o', 'mail_name=A', 'config', '-o', 'mail_name=B', 'mail_name'])).out).toBe('mail_name = B\n')
  })

  test('./deferd.toml configures deferd, but not the commands called under Postfix’s names, nor root', async () => {
    writeFileSync(operator.defaultFiles.folder, 'nonsense = 1\n')
    expect(await operator.run(['config', 'mail_name'], { uid: 1000 })).toMatchObject({ code: 78 })
    expect(await operator.run(['config', 'mail_name'], { uid: 0 })).toMatchObject({ code: 0 })
    await operator.own(() => Promise.resolve())
    for (const [calledAs, ...argv] of [['mailq'], ['sendmail', '-bp'], ['postqueue', '-p']] as const)
      expect(await operator.run(argv, { uid: 1000, calledAs })).toMatchObject({ code: 0, out: 'Mail queue is empty\n' })
  })

  test('an unexpected error prints a stack and exits with 70', async () => {
    const { code, err } = await operator.run(['start'])
    expect(code).toBe(70)
    expect(err).toMatch(/^deferd: Error: no daemon here\ndeferd: {5}at /)
  })
})

describe('config', () => {
  const env = { DEFERD_QUEUE_DIRECTORY: './deferd-queue', DEFERD_MYHOSTNAME: '' }

  test('prints name = value, for all or the named parameters', async () => {
    const { out } = await operator.run(['config'], { env })
    const lines = out.split('\n').slice(0, -1)
    expect(lines).toContain('minimal_backoff_time = 300s')
    expect(lines).toContain('relayhost =')
    expect(lines).toEqual(lines.toSorted())
    expect(await operator.says('config', 'maximal_queue_lifetime', 'bounce_queue_lifetime')).toBe(
      'maximal_queue_lifetime = 2d\nbounce_queue_lifetime = 2d\n',
    )
  })

  test('-n prints what is set and differs from the default, with tables, and no default that follows from another parameter', async () => {
    writeFileSync(
      path('deferd.toml'),
      'minimal_backoff_time = "5m"\nmaximal_queue_lifetime = "5d"\n[transport_maps]\n"*" = "smtp:[127.0.0.1]:26"\n[destination."a.example"]\nmaximal_backoff_time = "2h"\n',
    )
    expect(
      (await operator.run(['config', '-n', '--config', path('deferd.toml')])).out.replace(/^queue_directory.*\n|^myhostname.*\n/gm, ''),
    ).toBe(
      [
        'maximal_queue_lifetime = 5d',
        '',
        '[transport_maps]',
        '"*" = smtp:[127.0.0.1]:26',
        '',
        '[destination."a.example"]',
        'maximal_backoff_time = 2h',
        '',
      ].join('\n'),
    )
  })

  test('--json prints value, default and whether it was given', async () => {
    expect(JSON.parse((await operator.run(['config', '--json', 'mail_name', '-o', 'mail_name=X'])).out)).toEqual({
      name: 'mail_name',
      value: 'X',
      default: 'Deferd',
      given: true,
    })
  })
})

describe('start', () => {
  const LISTENS = 'deferd listens on 127.0.0.1:2525, [::1]:2525\nqueue directory: /q; metrics: http://127.0.0.1:2580/metrics\n'
  const daemon = (isNewQueue: boolean): RunningDaemon & { readonly told: readonly string[] } => {
    const told: string[] = []
    return {
      told,
      described: () => ({
        listeners: [
          { address: '127.0.0.1', port: 2525 },
          { address: '::1', port: 2525 },
        ],
        queueDirectory: '/q',
        http: '127.0.0.1:2580',
        page: null,
        isNewQueue,
      }),
      firstAccepted: Promise.resolve('4SVLCh0sf8z7Qhl'),
      reload: () => undefined,
      stop: async () => void told.push('stopped'),
    }
  }

  test('suggests a first mail on a new queue, and the next commands with its id and its own options', async () => {
    const running = daemon(true)
    const { code, out } = await operator.run(['start', '-o', 'smtpd_listen=127.0.0.1:2525, [::1]:2525'], { daemon: running, columns: 80 })
    expect({ code, told: running.told }).toEqual({ code: 0, told: ['stopped'] })
    expect(out).toBe(
      [
        LISTENS,
        'Send a first mail from another terminal. It stays deferred, because no host answers at 192.0.2.1:',
        "  printf 'Subject: hello\\n\\nIt works.\\n' | deferd sendmail -v -o 'smtpd_listen=127.0.0.1:2525, [::1]:2525' -f me@example.com 'you@[192.0.2.1]'",
        '',
        '',
        'The mail 4SVLCh0sf8z7Qhl is queued. List the queue, see why the mail waits, and try it again:',
        "  deferd queue list -o 'smtpd_listen=127.0.0.1:2525, [::1]:2525'",
        "  deferd queue show 4SVLCh0sf8z7Qhl -o 'smtpd_listen=127.0.0.1:2525, [::1]:2525'",
        "  deferd queue flush 4SVLCh0sf8z7Qhl -o 'smtpd_listen=127.0.0.1:2525, [::1]:2525'",
        '',
        '',
      ].join('\n'),
    )
  })

  test('suggests nothing in a pipe, on a queue that existed before, or when mail for an address literal has a configured next hop', async () => {
    expect((await operator.run(['start'], { daemon: daemon(true) })).out).toBe(LISTENS)
    expect((await operator.run(['start'], { daemon: daemon(false), columns: 80 })).out).toBe(LISTENS)
    const relayhost = ['-o', 'relayhost=[smtp.example.com]:587']
    expect((await operator.run(['start', ...relayhost], { daemon: daemon(true), columns: 80 })).out).toBe(LISTENS)
  })
})

describe('backup', () => {
  test('copies the queue beside its owner, readable by the user only', async () => {
    await operator.own(async (store) => {
      await queue(store, { at: NOW })
      expect(await operator.says('backup', path('copy.db'))).toMatch(/kB copied to /)
      await queue(store, { at: NOW })
    })
    expect(statSync(path('copy.db')).mode & 0o777).toBe(0o600)
    const copy = new Database(path('copy.db'), { readonly: true })
    expect(copy.pragma('integrity_check', { simple: true })).toBe('ok')
    expect(copy.prepare('select count(*) from message').pluck().get()).toBe(1)
    copy.close()
  })

  test('a name that cannot be that of a backup ends with 73 and changes nothing', async () => {
    await operator.own(async (store) => void (await queue(store, { at: NOW })))
    mkdirSync(path('folder'))
    symlinkSync('/dev/full', path('device'))
    const inodes = () => ['queue.db', 'lock.db', 'generation'].map((name) => statSync(path(name)).ino)
    const before = inodes()
    for (const [name, why] of [
      ['nowhere/copy.db', 'ENOENT: .*'],
      ['queue.db/copy.db', 'ENOTDIR: .*'],
      ['folder', 'it is not a file'],
      ['device', 'it is not a file'],
      ['queue.db', 'it is a file of the queue'],
      ['folder/../lock.db', 'it is a file of the queue'],
      ['generation', 'it is a file of the queue'],
    ] as const) {
      const { code, out, err } = await operator.run(['backup', `${operator.directory}/${name}`])
      expect([code, out]).toEqual([73, ''])
      expect(err).toMatch(
        new RegExp(`^deferd: cannot create the backup \\S+/${name}: ${why}; name a file in a folder that you can write\n$`),
      )
    }
    expect(inodes()).toEqual(before)
    expect(readdirSync(operator.directory).filter((name) => name.includes('.partial'))).toEqual([])
  })

  test('parts that killed backups left a day ago are removed, younger ones are not', async () => {
    await operator.own(async (store) => void (await queue(store, { at: NOW })))
    for (const [name, age] of [
      ['copy.db.partial-a', DAY - 1],
      ['copy.db.partial-b', DAY + 1],
      ['copy.db.partial-b-journal', DAY + 1],
      ['copy.db.older', DAY + 1],
    ] as const) {
      writeFileSync(path(name), '')
      utimesSync(path(name), (NOW - age) / 1_000, (NOW - age) / 1_000)
    }
    await operator.says('backup', path('copy.db'))
    expect(readdirSync(operator.directory).filter((name) => name.startsWith('copy.db'))).toEqual([
      'copy.db',
      'copy.db.older',
      'copy.db.partial-a',
    ])
  })

  test('can be read where nothing can be written', async () => {
    await operator.own(async (store) => void (await queue(store, { at: NOW })))
    await operator.says('backup', path('copy.db'))
    const bytes = readFileSync(path('copy.db'))
    // Octets 18 and 19 of the header are 1 for a rollback journal, and 2 for a write-ahead log, which a reader has to create.
    expect([...bytes.subarray(18, 20)]).toEqual([1, 1])
    expect(await operator.says('restore', path('copy.db'))).toContain('restored')
    expect([...readFileSync(path('queue.db')).subarray(18, 20)]).toEqual([2, 2])
    expect(readdirSync(operator.directory).filter((name) => name.startsWith('copy.db'))).toEqual(['copy.db'])
  })
})

describe('check', () => {
  const verdicts = async (...argv: readonly string[]) => {
    const { code, out } = await operator.run(['check', '--json', '-o', 'relayhost=[127.0.0.1]', ...argv])
    const findings = out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { what: string; verdict: string; text: string })
    return { code, found: Object.fromEntries(findings.map(({ what, verdict }) => [what, verdict])) }
  }

  test('reports no problem', async () => {
    await operator.own(async (store) => void (await queue(store, { at: NOW })))
    expect(await verdicts()).toEqual({
      code: 0,
      found: { configuration: 'ok', notices: 'ok', secrets: 'ok', 'queue folder': 'ok', queue: 'ok' },
    })
  })

  test('reports each problem and continues', async () => {
    await operator.own(() => Promise.resolve())
    writeFileSync(path('users'), 'app nonsense\n', { mode: 0o644 })
    writeFileSync(path('texts'), 'nonsense')
    const { code, found } = await verdicts('-o', `smtpd_sasl_users_file=${path('users')}`, '-o', `bounce_template_file=${path('texts')}`)
    expect(code).toBe(78)
    expect(found).toMatchObject({ notices: 'error', secrets: 'warning', users: 'error', queue: 'ok' })
  })

  test('a missing queue folder before the first start is not an error', async () => {
    const { code, found } = await verdicts('-o', `queue_directory=${path('later')}`, '-o', `smtpd_sasl_users_file=${path('users')}`)
    expect([code, found]).toMatchObject([78, { 'queue folder': 'warning', secrets: 'ok', users: 'error' }])
    expect(await verdicts('-o', `queue_directory=${path('later')}`)).toMatchObject({ code: 0 })
  })

  test('a damaged queue is an error, a missing one is created by the start', async () => {
    expect((await verdicts()).found).toMatchObject({ queue: 'warning' })
    await operator.own(async (store) => {
      for (let i = 0; i < 50; i++) await queue(store, { at: NOW, content: [Buffer.alloc(9000, 'x')] })
    })
    const bytes = readFileSync(path('queue.db'))
    bytes.fill(0x55, 8 * 4096, 40 * 4096)
    writeFileSync(path('queue.db'), bytes)
    expect((await verdicts()).found).toMatchObject({ queue: 'error' })
  })
})

test('each name prints help and the version', async () => {
  for (const name of ['sendmail', 'mailq', 'postqueue', 'postsuper', 'postcat', 'qshape']) {
    expect(await operator.says(name, '--help')).toMatch(new RegExp(`^Usage: deferd ${name} `))
    expect((await operator.run(['--help'], { calledAs: name })).out).toMatch(new RegExp(`^Usage: ${name} `))
  }
  expect(await operator.says('--version')).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test('the version and the licences load no command, the help text all, and a command itself', async () => {
  const shell = processShell()
  const loaded = async (...argv: readonly string[]) => (await buildProgram(shell, argv)).commands.length
  expect([await loaded('--version'), await loaded('--licenses'), await loaded('config')]).toEqual([0, 0, 1])
  expect(await loaded('--help')).toBeGreaterThan(20)
})

describe('user', () => {
  const user = (argv: readonly string[], stdin = '') =>
    operator.run(['user', ...argv], { stdin, env: { DEFERD_SMTPD_SASL_USERS_FILE: path('users') } })

  test('a file of another format is reported, not changed', async () => {
    writeFileSync(path('users'), 'app nonsense\n')
    for (const argv of [['list'], ['remove', 'app'], ['add', 'app']]) {
      expect(await user(argv, 'secret\n')).toMatchObject({
        code: 78,
        err: expect.stringMatching(/^deferd: cannot read .*: line 1: /) as string,
      })
    }
    expect(readFileSync(path('users'), 'utf8')).toBe('app nonsense\n')
  })

  test('adds, changes, lists and removes users, and stores hashes only', async () => {
    expect(await user(['add', 'app'], 'secret one\n')).toMatchObject({ code: 0, out: 'app may log in\n' })
    expect(statSync(path('users')).mode & 0o777).toBe(0o600)
    writeFileSync(path('users'), `# who may send\n${readFileSync(path('users'), 'utf8')}`)
    expect((await user(['add', 'other'], 'second')).out).toBe('other may log in\n')
    expect((await user(['add', 'app'], 'third')).out).toBe('app has a new password\n')
    const text = readFileSync(path('users'), 'utf8')
    expect(text).toMatch(/^# who may send\nother \S+\napp \S+\n$/)
    expect(text).not.toContain('third')
    expect(await passwordMatches('third', /^app (\S+)$/m.exec(text)?.[1] ?? '')).toBe(true)
    expect((await user(['list'])).out).toBe('other\napp\n')
    expect((await user(['remove', 'app'])).out).toBe('app may no longer log in\n')
    expect((await user(['list', '--json'])).out).toBe('{"name":"other"}\n')
  })

  test('refuses invalid input', async () => {
    expect((await user(['add', 'a b'], 'x')).code).toBe(64)
    expect((await user(['add', 'app'], '')).code).toBe(64)
    expect((await user(['remove', 'nobody'])).code).toBe(65)
    expect((await operator.run(['user', 'list'])).code).toBe(78)
  })
})

test('bounce preview prints a notice with the configured names', async () => {
  const out = await operator.says('bounce', 'preview', 'failure', '-o', 'mail_name=Example Mail')
  expect(out).toContain('Subject: Undelivered Mail Returned to Sender')
  expect(out).toContain('X-Example-Mail-Queue-ID: ')
  expect(await operator.says('bounce', 'preview', '-o', 'maximal_queue_lifetime=3d')).toMatch(/is\s+kept for 3 days/)
  expect((await operator.run(['bounce', 'preview', 'nonsense'])).code).toBe(64)
})

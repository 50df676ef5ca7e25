import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { RunningDaemon } from '../../src/cli/shell.ts'
import { passwordMatches } from '../../src/smtpd/users.ts'
import { queue } from '../conformance/mail.ts'
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
  ])('%j is wrong usage: 64, told on standard error', async (argv) => {
    const { code, out, err } = await operator.run(argv)
    expect({ code, out }).toEqual({ code: 64, out: '' })
    expect(err).not.toBe('')
  })

  test.each([[['--help']], [['queue', '--help']], [['queue', 'cat', '--help']], [['start', '-h']]])('%j is help', async (argv) => {
    const { code, out, err } = await operator.run(argv)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^Usage: deferd/)
  })

  test('a word that is nearly right is answered with the right one', async () => {
    expect((await operator.run(['quue'])).err).toContain('Did you mean queue?')
    expect((await operator.run(['config', 'relay_host'])).err).toBe('deferd: there is no parameter relay_host; did you mean relayhost?\n')
  })

  test('a bad configuration is told in full, under every command: 78', async () => {
    for (const argv of [['queue', 'list'], ['start'], ['mailq'], ['check']]) {
      const { code, err } = await operator.run([...argv, '-o', 'mynetworks=here', '-o', 'nonsense=1'])
      expect([code, err]).toEqual([78, 'deferd: -o: unknown parameter nonsense\n'])
    }
  })

  test('options before the command count too, those behind it win', async () => {
    expect((await operator.run(['-o', 'mail_name=A', 'config', 'mail_name'])).out).toBe('mail_name = A\n')
    expect((await operator.run(['-o', 'mail_name=A', 'config', '-o', 'mail_name=B', 'mail_name'])).out).toBe('mail_name = B\n')
  })

  test('what nobody foresaw shows a stack and ends with 70', async () => {
    const { code, err } = await operator.run(['start'])
    expect(code).toBe(70)
    expect(err).toMatch(/^deferd: Error: no daemon here\ndeferd: {5}at /)
  })
})

describe('config', () => {
  const env = { DEFERD_QUEUE_DIRECTORY: '', DEFERD_MYHOSTNAME: '' }

  test('prints name = value, all of them or those asked for', async () => {
    const { out } = await operator.run(['config'], { env })
    const lines = out.split('\n').slice(0, -1)
    expect(lines).toContain('minimal_backoff_time = 300s')
    expect(lines).toContain('relayhost =')
    expect(lines).toEqual(lines.toSorted())
    expect(await operator.says('config', 'maximal_queue_lifetime', 'bounce_queue_lifetime')).toBe(
      'maximal_queue_lifetime = 2d\nbounce_queue_lifetime = 2d\n',
    )
  })

  test('-n prints what differs from the default, in tables too', async () => {
    writeFileSync(
      path('deferd.toml'),
      'minimal_backoff_time = "5m"\nmaximal_queue_lifetime = "5d"\n[transport_maps]\n"*" = "smtp:[127.0.0.1]:26"\n[destination."a.example"]\nmaximal_backoff_time = "2h"\n',
    )
    expect(
      (await operator.run(['config', '-n', '--config', path('deferd.toml')])).out.replace(/^queue_directory.*\n|^myhostname.*\n/gm, ''),
    ).toBe(
      [
        'bounce_queue_lifetime = 5d',
        'maximal_queue_lifetime = 5d',
        'myorigin = relay.example',
        'smtp_helo_name = relay.example',
        'smtpd_banner = relay.example ESMTP Deferd',
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

  test('--json tells value, default and whether it was given', async () => {
    expect(JSON.parse((await operator.run(['config', '--json', 'mail_name', '-o', 'mail_name=X'])).out)).toEqual({
      name: 'mail_name',
      value: 'X',
      default: 'Deferd',
      given: true,
    })
  })
})

describe('start', () => {
  test('says where it listens and how to try it, with the options it was given', async () => {
    const told: string[] = []
    const daemon: RunningDaemon = {
      described: () => ({
        listeners: [
          { address: '127.0.0.1', port: 2525 },
          { address: '::1', port: 2525 },
        ],
        queueDirectory: '/q',
        http: '127.0.0.1:2580',
      }),
      reload: () => undefined,
      stop: async () => void told.push('stopped'),
    }
    const { code, out } = await operator.run(['start', '-o', 'smtpd_listen=127.0.0.1:2525, [::1]:2525'], { daemon })
    expect({ code, told }).toEqual({ code: 0, told: ['stopped'] })
    expect(out).toBe(
      [
        'deferd takes mail on 127.0.0.1:2525, [::1]:2525',
        'the queue is in /q, metrics are at http://127.0.0.1:2580/metrics',
        'send a first mail, then look at it:',
        "  printf 'Subject: hello\\n\\nIt works.\\n' | deferd sendmail -o 'smtpd_listen=127.0.0.1:2525, [::1]:2525' -f me@example.com you@example.com",
        "  deferd queue list -o 'smtpd_listen=127.0.0.1:2525, [::1]:2525'",
        "  deferd queue show -o 'smtpd_listen=127.0.0.1:2525, [::1]:2525' ID",
        '',
      ].join('\n'),
    )
  })
})

describe('backup', () => {
  test('copies the queue while its owner works, for nobody else to read', async () => {
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

  test('a copy that cannot be made leaves nothing behind', async () => {
    await operator.own(async (store) => void (await queue(store, { at: NOW })))
    expect(await operator.run(['backup', path('nowhere/copy.db')])).toMatchObject({ code: 71, out: '' })
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

  test('finds everything in order', async () => {
    await operator.own(async (store) => void (await queue(store, { at: NOW })))
    expect(await verdicts()).toEqual({
      code: 0,
      found: { configuration: 'ok', notices: 'ok', secrets: 'ok', 'queue folder': 'ok', queue: 'ok' },
    })
  })

  test('finds what is wrong, and goes on looking', async () => {
    await operator.own(() => Promise.resolve())
    writeFileSync(path('users'), 'app nonsense\n', { mode: 0o644 })
    writeFileSync(path('texts'), 'nonsense')
    const { code, found } = await verdicts('-o', `smtpd_sasl_users_file=${path('users')}`, '-o', `bounce_template_file=${path('texts')}`)
    expect(code).toBe(78)
    expect(found).toMatchObject({ notices: 'error', secrets: 'error', users: 'error', queue: 'ok' })
  })

  test('before the first start there is no folder yet, and that is no error', async () => {
    const { code, found } = await verdicts('-o', `queue_directory=${path('later')}`, '-o', `smtpd_sasl_users_file=${path('users')}`)
    expect([code, found]).toMatchObject([78, { 'queue folder': 'warning', secrets: 'ok', users: 'error' }])
    expect(await verdicts('-o', `queue_directory=${path('later')}`)).toMatchObject({ code: 0 })
  })

  test('a queue that is not there, or is damaged, is an error', async () => {
    expect((await verdicts()).found).toMatchObject({ queue: 'error' })
    await operator.own(async (store) => {
      for (let i = 0; i < 50; i++) await queue(store, { at: NOW, content: [Buffer.alloc(9000, 'x')] })
    })
    const bytes = readFileSync(path('queue.db'))
    bytes.fill(0x55, 8 * 4096, 40 * 4096)
    writeFileSync(path('queue.db'), bytes)
    expect((await verdicts()).found).toMatchObject({ queue: 'error' })
  })
})

test('help is there under every name, and the version', async () => {
  for (const name of ['sendmail', 'mailq', 'postqueue', 'postsuper', 'postcat', 'qshape']) {
    expect(await operator.says(name, '--help')).toMatch(new RegExp(`^Usage: deferd ${name} `))
    expect((await operator.run(['--help'], { calledAs: name })).out).toMatch(new RegExp(`^Usage: ${name} `))
  }
  expect(await operator.says('--version')).toMatch(/^\d+\.\d+\.\d+\n$/)
})

describe('user', () => {
  const user = (argv: readonly string[], stdin = '') =>
    operator.run(['user', ...argv], { stdin, env: { DEFERD_SMTPD_SASL_USERS_FILE: path('users') } })

  test('a file that is not ours is told, not touched', async () => {
    writeFileSync(path('users'), 'app nonsense\n')
    for (const argv of [['list'], ['remove', 'app'], ['add', 'app']]) {
      expect(await user(argv, 'secret\n')).toMatchObject({
        code: 78,
        err: expect.stringMatching(/^deferd: cannot read .*: line 1: /) as string,
      })
    }
    expect(readFileSync(path('users'), 'utf8')).toBe('app nonsense\n')
  })

  test('adds, changes, lists and removes, and keeps hashes only', async () => {
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

  test('refuses what makes no sense', async () => {
    expect((await user(['add', 'a b'], 'x')).code).toBe(64)
    expect((await user(['add', 'app'], '')).code).toBe(64)
    expect((await user(['remove', 'nobody'])).code).toBe(65)
    expect((await operator.run(['user', 'list'])).code).toBe(78)
  })
})

test('bounce preview prints a notice with the names that are configured', async () => {
  const out = await operator.says('bounce', 'preview', 'failure', '-o', 'mail_name=Example Mail')
  expect(out).toContain('Subject: Undelivered Mail Returned to Sender')
  expect(out).toContain('X-Example-Mail-Queue-ID: ')
  expect((await operator.run(['bounce', 'preview', 'nonsense'])).code).toBe(64)
})

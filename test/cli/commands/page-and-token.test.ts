/** `deferd page` and `deferd token` as whole commands, with and without a daemon. */
import { createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { startDaemon, type Daemon } from '../../../src/daemon/daemon.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { Operator } from '../../support/operator.ts'
import { ask } from '../../support/raw-http.ts'
import { portBelowEphemeral } from '../../support/ports.ts'

let operator: Operator
let daemon: Daemon | undefined
beforeEach(() => {
  operator = new Operator()
})
afterEach(async () => {
  await daemon?.stop()
  daemon = undefined
  operator.leave()
})

async function start(more: object = {}): Promise<void> {
  const loaded = configFrom({ queue_directory: operator.directory, smtpd_listen: '127.0.0.1:0', ...more }, 'relay.example')
  daemon = await startDaemon({ loaded, events: new Events(() => systemClock.now()) })
}

/** Logs in with a link, and returns the field Cookie of the session. */
async function cookieOf(link: string): Promise<string> {
  const { port, origin, hash } = new URL(link)
  const fields = { 'Content-Type': 'application/x-www-form-urlencoded', Origin: origin }
  const { headers } = await ask(Number(port), {
    method: 'POST',
    target: '/login',
    host: `127.0.0.1:${port}`,
    fields,
    body: `code=${hash.slice(1)}`,
  })
  return headers.get('set-cookie')?.split(';', 1)[0] ?? ''
}

async function whoami(link: string, fields: Readonly<Record<string, string>>): Promise<unknown> {
  const { port } = new URL(link)
  return JSON.parse((await ask(Number(port), { target: '/api/v1/whoami', host: `127.0.0.1:${port}`, fields })).body)
}

describe('page', () => {
  test('opens a port while it runs, and prints a link that logs in once', async () => {
    await start()
    const port = await portBelowEphemeral()
    const interrupted = Promise.withResolvers<void>()
    const ran = operator.run(['page', '--port', String(port), '--role', 'viewer'], { interrupted: interrupted.promise })
    await expect
      .poll(() =>
        ask(port, { target: '/login' }).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200)
    interrupted.resolve()
    const { code, out } = await ran
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(
        new RegExp(
          `^http://127\\.0\\.0\\.1:${port}/login#[0-9a-z]{26}\n\nThe link works once, within 60 seconds\\.\nFrom another machine, .*: ssh -L ${port}:127\\.0\\.0\\.1:${port} operator@.*\n`,
        ),
      ),
    ])
    await expect(ask(port, { target: '/login' })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test.each(['viewer', 'operator', 'admin'] as const)('with admin_listen prints the link and ends; the role is %s', async (role) => {
    await start({ admin_listen: `127.0.0.1:${await portBelowEphemeral()}` })
    const out = await operator.says('page', '--role', role)
    const link = out.split('\n', 1)[0] ?? ''
    expect(out).toContain('ssh -L')
    const Cookie = await cookieOf(link)
    expect(await whoami(link, { Cookie })).toEqual({
      name: 'page:operator',
      role,
      content: role === 'admin',
      destinations: null,
      address: '127.0.0.1',
    })
    expect(await cookieOf(link)).toBe('')
  })

  test('under sudo, the name is that of the user who called it', async () => {
    await start({ admin_listen: `127.0.0.1:${await portBelowEphemeral()}` })
    const { out } = await operator.run(['page', '--role', 'viewer', '--content'], { env: { SUDO_USER: 'alice' } })
    const link = out.split('\n', 1)[0] ?? ''
    expect(await whoami(link, { Cookie: await cookieOf(link) })).toMatchObject({ name: 'page:alice', content: true })
  })

  test('without a daemon, or with a port in use, it says what to do', async () => {
    const without = await operator.run(['page'])
    expect([without.code, without.err]).toEqual([
      69,
      expect.stringMatching(/^deferd: no daemon runs for the queue in .*: start it with deferd start\n$/),
    ])
    await start()
    const taken = createServer()
    const port = await portBelowEphemeral()
    await new Promise<void>((resolve) => void taken.listen(port, '127.0.0.1', resolve))
    const refused = await operator.run(['page', '--port', String(port)])
    expect([refused.code, refused.err]).toEqual([
      69,
      `deferd: cannot listen on 127.0.0.1:${port} (EADDRINUSE): choose another port with --port\n`,
    ])
    await new Promise((resolve) => void taken.close(resolve))
    expect((await operator.run(['page', '--role', 'sender'])).code).toBe(64)
    expect((await operator.run(['page', '--port', '70000'])).code).toBe(64)
  })
})

describe('token', () => {
  test('a token is printed once, listed without its secret, and removed', async () => {
    await operator.says('queue', 'list').catch(() => '')
    await start({ admin_listen: `127.0.0.1:${await portBelowEphemeral()}` })
    const added = await operator.run([
      'token',
      'add',
      'ci',
      '--role',
      'operator',
      '--content',
      '--destination',
      '*.Example',
      '--expires',
      '90d',
    ])
    expect([added.code, added.out]).toEqual([0, expect.stringMatching(/^dfd_[0-9A-Za-z]{49}\n$/)])
    const token = added.out.trim()
    const link = daemon?.page ?? ''
    expect(await whoami(link, { Authorization: `Bearer ${token}` })).toMatchObject({
      name: 'token:ci',
      role: 'operator',
      content: true,
      destinations: '*.example',
    })
    const json = JSON.parse(await operator.says('token', 'list', '--json')) as object
    expect(json).toEqual({
      name: 'ci',
      role: 'operator',
      content: true,
      destinations: '*.example',
      added_time: expect.any(Number),
      added_by: 'operator',
      expire_time: expect.any(Number),
      last_used_time: expect.any(Number),
    })
    expect(JSON.stringify(json)).not.toContain(token.slice(4, 20))
    expect(await operator.says('token', 'list')).toMatch(
      /^ci: operator with content, destinations \*\.example; added .* by operator; last used in the hour from .*; expires .*\n$/,
    )
    expect((await operator.run(['token', 'add', 'ci', '--role', 'viewer'])).code).toBe(65)
    expect(await operator.says('token', 'remove', 'ci')).toBe('ci: removed\n')
    expect(await operator.says('token', 'list')).toBe('')
    expect((await operator.run(['token', 'remove', 'ci'])).code).toBe(65)
    const audit = (await operator.says('audit', '--json'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(audit).toMatchObject([
      { who: 'operator', action: 'token add', arguments: 'ci --role operator --content --destination *.example --expires 90d' },
      { who: 'operator', action: 'token remove', arguments: 'ci' },
    ])
  })

  test.each([
    [['add', 'a b', '--role', 'viewer'], /invalid name of a token/],
    [['add', 'a', '--role', 'viewer', '--destination', 'a.example', '--destination', 'b.example'], /A token has one pattern/],
    [['add', 'ci'], /required option '--role <role>' not specified/],
    [['add', 'ci', '--role', 'root'], /Allowed choices are viewer, operator, sender, admin/],
    [['add', 'ci', '--role', 'viewer', '--expires', '0s'], /--expires must be longer than 0/],
  ])('token %j is refused', async (args, sentence) => {
    const { code, err } = await operator.run(['token', ...args])
    expect([code, err]).toEqual([64, expect.stringMatching(sentence)])
  })
})

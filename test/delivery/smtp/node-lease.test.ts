/** A node whose lease has ended opens no connection and begins no mail transaction, because another node may have its mail. */
import { expect, test } from 'vitest'
import type { Script, ServerScript } from '../../support/scripted-server.ts'
import { SmtpAgentHarness } from '../../support/smtp-agent-harness.ts'

const ANN = 'ann@example.net'

/** Hosts of `example.net` in the order of preference, and a node with a lease that can end. */
class LeasedNode {
  holds = true
  readonly far: SmtpAgentHarness

  /** `ending` gives a script that ends the lease when the host has received a command, and replies. */
  constructor(scriptsOf: (ending: (reply: string) => Script) => readonly ServerScript[]) {
    const scripts = scriptsOf((reply) => () => {
      this.holds = false
      return reply
    })
    this.far = new SmtpAgentHarness({ agent: { holds: () => this.holds } })
    this.far.mx('example.net', ...scripts.map((_, n) => [10 * (n + 1), `mx${n + 1}.example.net`] as const))
    scripts.forEach((script, n) => this.far.host(`mx${n + 1}.example.net`, `192.0.2.${n + 1}`, script))
  }

  attempt(keepConnection = false): ReturnType<SmtpAgentHarness['attempt']> {
    return this.far.attempt(this.far.request({ to: [ANN] }), { keepConnection, signal: new AbortController().signal })
  }

  get commands(): readonly string[] {
    return this.far.sessions.flatMap(({ commands }) => commands.map((command) => command.slice(0, 4)))
  }
}

test('a lease that ends during the look-up of the hosts: no connection, and the attempt has not begun', async () => {
  const node = new LeasedNode(() => [{}])
  const attempt = node.attempt()
  node.holds = false
  expect(await attempt).toBe('not-begun')
  expect(node.far.asked).toContain('MX example.net')
  expect(node.far.dialled).toEqual([])
})

test('a lease that ends during EHLO: no MAIL, and the attempt has not begun', async () => {
  for (const ehlo of ['250-far.example\r\n250 PIPELINING', '250 far.example']) {
    const node = new LeasedNode((ending) => [{ ehlo: ending(ehlo) }])
    expect(await node.attempt()).toBe('not-begun')
    expect(node.commands).toEqual(['EHLO', 'QUIT'])
  }
})

test('a lease that ends during RSET on a kept connection to a host without PIPELINING: no MAIL', async () => {
  const node = new LeasedNode((ending) => [{ ehlo: '250 far.example', rset: ending('250 2.0.0 Ok') }])
  expect(await node.attempt(true)).toMatchObject({ relay: 'mx1.example.net[192.0.2.1]:25' })
  expect(await node.attempt(true)).toBe('not-begun')
  expect(node.commands).toEqual(['EHLO', 'MAIL', 'RCPT', 'DATA', 'RSET', 'QUIT'])
})

test('a node whose lease has ended uses no kept connection', async () => {
  const node = new LeasedNode(() => [{}])
  await node.attempt(true)
  node.holds = false
  expect(await node.attempt(true)).toBe('not-begun')
  expect(node.commands).toEqual(['EHLO', 'MAIL', 'RCPT', 'DATA', 'QUIT'])
})

test('the answer of the first host is the outcome when the lease ends before the second one', async () => {
  const node = new LeasedNode((ending) => [{ rcpt: ending('450 4.2.0 greylisted') }, {}])
  const result = await node.attempt()
  expect(typeof result === 'string' ? [] : [...result.outcomes.values()]).toMatchObject([
    { outcome: 'deferred', status: { status: '4.2.0' } },
  ])
  expect(node.far.dialled).toEqual(['192.0.2.1'])
})

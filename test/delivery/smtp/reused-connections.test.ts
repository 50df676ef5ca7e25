/** Dialogues of sessions over a kept connection: they have no line about mail of another destination. */
import { expect, test } from 'vitest'
import { SECOND } from '../../../src/system/clock.ts'
import { SmtpAgentHarness } from '../../support/smtp-agent-harness.ts'
import type { ServerScript } from '../../support/scripted-server.ts'

/** Tables make the domains destinations of their own. */
const OWN_TABLES = {
  destination: new Map([
    ['one.example', {}],
    ['two.example', {}],
  ]),
}

const REFUSES_BOB: ServerScript = {
  ehlo: '250-hop\r\n250 PIPELINING',
  rcpt: (line) => (line.includes('bob@') ? '550 5.1.1 no such user' : '250 2.1.5 Ok'),
}

function relayed(config: readonly string[] = ['relayhost=[hop.example]']): SmtpAgentHarness {
  const far = new SmtpAgentHarness({ config, tables: OWN_TABLES, recorded: true })
  far.host('hop.example', '192.0.2.9', REFUSES_BOB)
  return far
}

const wait = (far: SmtpAgentHarness, seconds: number): void => far.clock.jumpTo(far.clock.now() + seconds * SECOND)

test.each([
  ['relayhost', ['relayhost=[hop.example]']],
  ['smtp_fallback_relay', ['smtp_fallback_relay=[hop.example]']],
])('a connection to the same %s is reused for another destination, whose dialogue begins anew', async (_, config) => {
  const far = relayed(config)
  await far.deliver({ to: ['ann@one.example'], from: 'secret@us.example', keep: true })
  wait(far, 1)
  const { of } = await far.deliver({ to: ['bob@two.example'], keep: true })
  expect(far.sessions).toHaveLength(1)
  const { session } = of()
  expect(session?.text).not.toMatch(/ann@one\.example|secret@us\.example/)
  expect(session?.text.trimEnd().split('\n').slice(1, 10)).toEqual([
    '   1000 * the connection from 127.0.0.1 is used again',
    '   1000 C RSET',
    '   1000 C MAIL FROM:<app@us.example>',
    '   1000 C RCPT TO:<bob@two.example>',
    '   1000 C DATA',
    '   1000 S 250 2.0.0 Ok',
    '   1000 S 250 2.1.0 Ok',
    '   1000 S 550 5.1.1 no such user',
    '   1000 S 354 End data with <CR><LF>.<CR><LF>',
  ])
  expect(session).toMatchObject({ source: '127.0.0.1', host: 'hop.example[192.0.2.9]:25', at: expect.any(Number) as number })
})

test('the dialogue of the first destination, after one of another, has no line of that', async () => {
  const far = relayed()
  await far.deliver({ to: ['ann@one.example'], keep: true })
  await far.deliver({ to: ['carol@two.example'], keep: true })
  const { of } = await far.deliver({ to: ['bob@one.example'], keep: true })
  expect(far.sessions).toHaveLength(1)
  expect(of().session?.text).not.toMatch(/ann@|carol@/)
})

test('mail of the same destination goes on with the dialogue', async () => {
  const far = relayed()
  await far.deliver({ to: ['ann@one.example'], keep: true })
  const { of } = await far.deliver({ to: ['bob@one.example'], keep: true })
  expect(far.sessions).toHaveLength(1)
  expect(of().session?.text).toMatch(/RCPT TO:<ann@one\.example>[^]*RCPT TO:<bob@one\.example>/)
})

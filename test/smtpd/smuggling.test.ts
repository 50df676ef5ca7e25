/**
 * SMTP smuggling (CVE-2023-51764 and related ones): only CRLF.CRLF ends a message, for any bytes around a dot, so that
 * no server after this relay finds a second message in the content of one.
 */
import { describe, expect, test } from 'vitest'
import { openSmtpd, OUTSIDER, type SmtpdHarness } from '../support/smtpd-harness.ts'
import { cutAt, singleBytes } from '../support/segments.ts'
import { smugglingOf, SMUGGLING_MARKS } from '../support/smuggling.ts'

async function messagesFrom(world: SmtpdHarness, packets: readonly Buffer[]): Promise<string[]> {
  const client = await world.connect(OUTSIDER)
  await client.upToData(['ann@far.example'])
  const first = world.intake.taken.length
  await client.send(...packets)
  await client.say('QUIT')
  return world.intake.taken.slice(first).map((message) => message.original)
}

describe.each(['normalize', 'reject'] as const)('with smtpd_forbid_bare_newline = %s', (smtpd_forbid_bare_newline) => {
  test.each(SMUGGLING_MARKS)('$before . $after does not end a message', async ({ mark }) => {
    const world = await openSmtpd({ relay_domains: ['far.example'], smtpd_forbid_bare_newline })
    const content = smugglingOf(mark)
    const messages = await messagesFrom(world, [content])
    expect(messages.length).toBeLessThanOrEqual(1)
    for (const message of messages) {
      expect(message).toContain('smuggled')
      // The content to be sent on has no sequence that any server could accept as the end.
      expect(message.replaceAll('\r\n', '')).not.toMatch(/[\r\n\0]/)
      expect(message).not.toMatch(/\r\n\.\r\n/)
    }
    expect(await messagesFrom(world, singleBytes(content))).toEqual(messages)
    for (let place = 1; place < content.length; place++) {
      expect({ place, messages: await messagesFrom(world, cutAt(content, [place])) }).toEqual({ place, messages })
    }
  })
})

test('with reject a message with bare LFs is refused after its end', async () => {
  const { connect, intake } = await openSmtpd({ smtpd_forbid_bare_newline: 'reject' })
  const client = await connect()
  await client.upToData()
  expect(await client.send('\r\na\nb\r\n.\r\n')).toBe('550 5.5.2 relay.example Error: bare <LF> received\r\n')
  expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
  expect(await client.send('NOOP\n')).toBe('550 5.5.2 relay.example Error: bare <LF> received\r\n')
  expect(client.closed).toBe(true)
  expect(intake.taken).toEqual([])
})

test('an excluded client may end its message with LF.LF', async () => {
  const { connect, intake } = await openSmtpd({
    smtpd_forbid_bare_newline: 'reject',
    smtpd_forbid_bare_newline_exclusions: ['127.0.0.0/8'],
  })
  const client = await connect()
  await client.upToData()
  expect(await client.send('\na\n.\n')).toMatch(/^250 2\.0\.0 Ok: queued/)
  expect(intake.taken[0]?.text).toMatch(/\r\n\r\na\r\n$/)
})

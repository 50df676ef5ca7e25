/**
 * SMTP smuggling (CVE-2023-51764 and its kin): whatever stands round a dot, only CRLF.CRLF ends a message, so that no
 * server behind us finds a second message in what was one to us.
 */
import { describe, expect, test } from 'vitest'
import { openReception, OUTSIDER, type Reception } from '../support/reception.ts'
import { cutAt, singleBytes } from '../support/segments.ts'
import { smugglingOf, SMUGGLING_MARKS } from '../support/smuggling.ts'

async function messagesFrom(world: Reception, packets: readonly Buffer[]): Promise<string[]> {
  const client = await world.connect(OUTSIDER)
  await client.upToData(['ann@far.example'])
  const first = world.intake.taken.length
  await client.send(...packets)
  await client.say('QUIT')
  return world.intake.taken.slice(first).map((message) => message.original)
}

describe.each(['normalize', 'reject'] as const)('with smtpd_forbid_bare_newline = %s', (smtpd_forbid_bare_newline) => {
  test.each(SMUGGLING_MARKS)('$before . $after does not end a message', async ({ mark }) => {
    const world = await openReception({ relay_domains: ['far.example'], smtpd_forbid_bare_newline })
    const content = smugglingOf(mark)
    const messages = await messagesFrom(world, [content])
    expect(messages.length).toBeLessThanOrEqual(1)
    for (const message of messages) {
      expect(message).toContain('smuggled')
      // Nothing that any server could take for an end is left in what we would send on.
      expect(message.replaceAll('\r\n', '')).not.toMatch(/[\r\n\0]/)
      expect(message).not.toMatch(/\r\n\.\r\n/)
    }
    expect(await messagesFrom(world, singleBytes(content))).toEqual(messages)
    for (let place = 1; place < content.length; place++) {
      expect({ place, messages: await messagesFrom(world, cutAt(content, [place])) }).toEqual({ place, messages })
    }
  })
})

test('a message with bare LFs is refused where they are forbidden, after it was read whole', async () => {
  const { connect, intake } = await openReception({ smtpd_forbid_bare_newline: 'reject' })
  const client = await connect()
  await client.upToData()
  expect(await client.send('\r\na\nb\r\n.\r\n')).toBe('550 5.5.2 relay.example Error: bare <LF> received\r\n')
  expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
  expect(await client.send('NOOP\n')).toBe('550 5.5.2 relay.example Error: bare <LF> received\r\n')
  expect(client.closed).toBe(true)
  expect(intake.taken).toEqual([])
})

test('a client that is excused from the rule may end its message with LF.LF', async () => {
  const { connect, intake } = await openReception({
    smtpd_forbid_bare_newline: 'reject',
    smtpd_forbid_bare_newline_exclusions: ['127.0.0.0/8'],
  })
  const client = await connect()
  await client.upToData()
  expect(await client.send('\na\n.\n')).toMatch(/^250 2\.0\.0 Ok: queued/)
  expect(intake.taken[0]?.text).toMatch(/\r\n\r\na\r\n$/)
})

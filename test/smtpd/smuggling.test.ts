/**
 * SMTP smuggling (CVE-2023-51764 and its kin): whatever stands round a dot, only CRLF.CRLF ends a message, so that no
 * server behind us finds a second message in what was one to us.
 */
import { describe, expect, test } from 'vitest'
import { openReception, OUTSIDER, type Reception } from '../support/reception.ts'
import { segmentations, singleBytes } from '../support/segments.ts'

const ENDS = { nothing: '', LF: '\n', CR: '\r', CRLF: '\r\n', CRCRLF: '\r\r\n', NULCRLF: '\0\r\n' }

const SMUGGLED = 'MAIL FROM:<evil@us.example>\r\nRCPT TO:<boss@far.example>\r\nDATA\r\nSubject: smuggled\r\n\r\nboo'

const PAIRS = Object.entries(ENDS)
  .flatMap(([before, first]) => Object.entries(ENDS).map(([after, second]) => ({ before, after, mark: `${first}.${second}` })))
  .filter(({ mark }) => !mark.includes('\r\n.\r\n'))

async function messagesFrom(world: Reception, packets: readonly Buffer[]): Promise<string[]> {
  const client = await world.connect(OUTSIDER)
  await client.upToData(['ann@far.example'])
  const first = world.intake.taken.length
  await client.send(...packets)
  await client.say('QUIT')
  return world.intake.taken.slice(first).map((message) => message.original)
}

describe.each(['normalize', 'reject'] as const)('with smtpd_forbid_bare_newline = %s', (smtpd_forbid_bare_newline) => {
  test.each(PAIRS)('$before . $after does not end a message', async ({ mark }) => {
    const world = await openReception({ relay_domains: ['far.example'], smtpd_forbid_bare_newline })
    const content = Buffer.from(`Subject: x\r\n\r\nhello${mark}${SMUGGLED}\r\n.\r\n`, 'latin1')
    const messages = await messagesFrom(world, [content])
    expect(messages.length).toBeLessThanOrEqual(1)
    for (const message of messages) {
      expect(message).toContain('smuggled')
      // Nothing that any server could take for an end is left in what we would send on.
      expect(message.replaceAll('\r\n', '')).not.toMatch(/[\r\n\0]/)
      expect(message).not.toMatch(/\r\n\.\r\n/)
    }
    expect(await messagesFrom(world, singleBytes(content))).toEqual(messages)
  })
})

test.each([
  ['\n.\r\n', 1],
  ['\r\n.\n', 1],
  ['\r\n\0.\r\n', 0],
])('%j, cut at every place, is the same', async (mark, count) => {
  const content = Buffer.from(`\r\nhello${mark}${SMUGGLED}\r\n.\r\n`, 'latin1')
  const world = await openReception({ relay_domains: ['far.example'] })
  const expected = await messagesFrom(world, [content])
  expect(expected).toHaveLength(count)
  for (const { name, packets } of segmentations(content)) {
    expect({ name, messages: await messagesFrom(world, packets) }).toEqual({ name, messages: expected })
  }
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

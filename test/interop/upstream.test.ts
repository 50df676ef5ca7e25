/** Clients that a proxy or filter in front of the relay names: deferd and Postfix reply alike. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../support/required.ts'
import { Client } from './dialogue.ts'
import { startPair, type Pair, type PairOptions, type System } from './systems.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())

/** Starts both systems for the tests of a group. */
function pairFor(options: PairOptions): { readonly both: <T>(observe: (system: System) => Promise<T>) => Promise<readonly [T, T]> } {
  let pair: Pair
  beforeAll(async () => {
    pair = await startPair(options)
  }, 60_000)
  afterAll(() => pair.stop(), 60_000)
  return { both: async (observe) => Promise.all([observe(pair.deferd), observe(pair.postfix)]) }
}

/** Sends the opening, then lines one after the other, and returns the replies. The first reply is the greeting. */
async function converse(port: number, opening: Buffer, lines: readonly string[]): Promise<readonly string[]> {
  const client = await Client.open(port, '127.0.0.1')
  try {
    client.send(opening.toString('latin1'))
    const replies = [await client.reply()]
    for (const line of lines) {
      if (replies.at(-1) === '(closed)') break
      client.send(`${line}\r\n`)
      replies.push(await client.reply())
    }
    return replies
  } finally {
    client.close()
  }
}

const SIGNATURE = '0d0a0d0a000d0a515549540a'
const text = (header: string): Buffer => Buffer.from(header, 'latin1')
const binary = (rest: string): Buffer => Buffer.from(`${SIGNATURE}${rest}`, 'hex')
const TRUSTED = '7f0000010a00000ad9030019'

const HEADERS: Readonly<Record<string, Buffer>> = {
  'a trusted client': text('PROXY TCP4 127.0.0.1 10.0.0.10 55555 25\r\n'),
  'an outsider': text('PROXY TCP4 203.0.113.9 10.0.0.10 55555 25\r\n'),
  'an outsider over IPv6': text('PROXY TCP6 2001:db8::1 ::1 55555 25\r\n'),
  'an IPv4-mapped client': text('PROXY TCP6 ::ffff:127.0.0.1 ::1 55555 25\r\n'),
  UNKNOWN: text('PROXY UNKNOWN\r\n'),
  'no protocol': text('PROXY \r\n'),
  'a bad address': text('PROXY TCP4 203.0.113.999 10.0.0.10 55555 25\r\n'),
  'an address of the other family': text('PROXY TCP4 ::1 10.0.0.10 55555 25\r\n'),
  'a bad port': text('PROXY TCP4 203.0.113.9 10.0.0.10 66666 25\r\n'),
  'a missing port': text('PROXY TCP4 203.0.113.9 10.0.0.10 55555\r\n'),
  'a command instead of a header': text('EHLO client.example\r\n'),
  'a header and a command': text('PROXY TCP4 127.0.0.1 10.0.0.10 55555 25\r\nEHLO client.example\r\n'),
  'version 2 with a trusted client': binary(`2111000c${TRUSTED}`),
  'version 2 with an outsider': binary('2111000ccb0071090a00000ad9030019'),
  'version 2 over IPv6': binary(`21210024${'20010db8'.padEnd(31, '0')}1${'0'.repeat(31)}1d9030019`),
  'version 2 with fields': binary(`21110011${TRUSTED}0400020000`),
  'version 2, LOCAL': binary('20000000'),
  'version 2, LOCAL with addresses': binary('2011000ccb0071090a00000ad9030019'),
  'version 2 over UDP': binary(`2112000c${TRUSTED}`),
  'version 2 with a short address': binary(`2111000b${TRUSTED}`),
  'version 3': binary(`3111000c${TRUSTED}`),
  'version 2 with an unknown command': binary(`2211000c${TRUSTED}`),
}

const PROXY_LINES = [
  'EHLO x',
  'PROXY TCP4 127.0.0.1 10.0.0.10 55555 25',
  'MAIL FROM:<a@b.test>',
  'RCPT TO:<c@far.test>',
  'RCPT TO:<c@open.test>',
  'QUIT',
]

describe.skipIf(reason !== null)(`deferd and Postfix${reason === null ? '' : ` (not run: ${reason})`}`, () => {
  describe('behind a proxy', () => {
    const settings = { smtpd_upstream_proxy_protocol: 'haproxy', smtpd_upstream_proxy_timeout: '2s', inet_protocols: 'all' }
    const { both } = pairFor({ settings, opening: 'PROXY TCP4 127.0.0.1 10.0.0.10 55555 25\r\n' })

    test.each(Object.keys(HEADERS))('reply alike after a header with %s', async (name) => {
      const [deferd, postfix] = await both(({ port }) => converse(port, HEADERS[name] ?? Buffer.alloc(0), PROXY_LINES))
      expect(deferd).toEqual(postfix)
    })

    test('reply alike when no header comes', async () => {
      const [deferd, postfix] = await both(({ port }) => converse(port, Buffer.alloc(0), []))
      expect(deferd).toEqual(postfix)
      expect(deferd).toEqual(['421 4.3.0 relay.example Server local error'])
    })
  })
})

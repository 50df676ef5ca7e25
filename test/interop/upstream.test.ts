/** Clients that a proxy or filter in front of the relay names: deferd and Postfix reply alike. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../support/required.ts'
import { Client } from './dialogue.ts'
import { settled } from './observe.ts'
import { startPair, type Pair, type PairOptions, type System } from './systems.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())

/** Starts both systems for the tests of a group. */
function pairFor(options: PairOptions): { readonly both: <T>(observe: (system: System) => Promise<T>) => Promise<readonly [T, T]> } {
  let pair: Pair
  beforeAll(async () => {
    pair = await startPair(options)
  })
  afterAll(() => pair.stop())
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

const LONG = 'x'.repeat(256)
const AFTER = ['EHLO y', 'MAIL FROM:<a@b.test>', 'RCPT TO:<c@far.test>', 'RCPT TO:<c@open.test>', 'XCLIENT ADDR=127.0.0.1', 'QUIT']
/** Commands after EHLO of an authorized client. */
const XCLIENTS: readonly (readonly [string, ...string[]])[] = [
  ['XCLIENT'],
  ['XCLIENT ADDR=203.0.113.9'],
  ['xclient addr=203.0.113.9 name=client.example'],
  ['XCLIENT ADDR=127.0.0.2'],
  ['XCLIENT ADDR=127.0.0.2', 'XCLIENT ADDR=203.0.113.9'],
  ['XCLIENT ADDR=203.0.113.9', 'XCLIENT ADDR=127.0.0.1'],
  ['XCLIENT ADDR=IPV6:2001:db8::1'],
  ['XCLIENT ADDR=ipv6:::ffff:203.0.113.9'],
  ['XCLIENT ADDR=[UNAVAILABLE]'],
  ['XCLIENT ADDR=2001:db8::1'],
  ['XCLIENT ADDR=[203.0.113.9]'],
  ['XCLIENT ADDR=203.0.113'],
  ['XCLIENT ADDR=0.1.2.3'],
  ['XCLIENT ADDR=IPV6:fe80::1%eth0'],
  ['XCLIENT ADDR=1+3C2@3'],
  ['XCLIENT ADDR='],
  ['XCLIENT ADDR'],
  ['XCLIENT =1.2.3.4'],
  ['XCLIENT FOO=x'],
  [`XCLIENT NAME=${LONG}`],
  ['XCLIENT NAME=[UNAVAILABLE] ADDR=203.0.113.9'],
  ['XCLIENT NAME=[tempunavail]'],
  ['XCLIENT NAME=spike+2Eexample.test'],
  ['XCLIENT NAME=a+4'],
  ['XCLIENT NAME=a+0D+0Ab'],
  ['XCLIENT NAME=-a.test'],
  ['XCLIENT NAME=a..test'],
  ['XCLIENT NAME=1.2.3.4'],
  ['XCLIENT REVERSE_NAME=a.test'],
  ['XCLIENT REVERSE_NAME=a..test'],
  ['XCLIENT PORT=25'],
  ['XCLIENT PORT=[UNAVAILABLE]'],
  ['XCLIENT PORT=x'],
  ['XCLIENT PORT=123456'],
  ['XCLIENT PROTO=SMTP'],
  ['XCLIENT PROTO=esmtp HELO=client.example'],
  ['XCLIENT PROTO=LMTP'],
  ['XCLIENT PROTO=[UNAVAILABLE]'],
  ['XCLIENT HELO=[UNAVAILABLE]'],
  ['XCLIENT HELO=a+3Cb+3E'],
  ['XCLIENT DESTADDR=10.0.0.1 DESTPORT=25'],
  ['XCLIENT DESTADDR=x'],
  ['XCLIENT DESTPORT=x'],
  ['XCLIENT LOGIN=ann ADDR=203.0.113.9'],
  ['XCLIENT LOGIN=[UNAVAILABLE] ADDR=203.0.113.9'],
  ['XCLIENT LOGIN=ann', 'XCLIENT ADDR=203.0.113.9'],
  ['MAIL FROM:<a@b.test>', 'XCLIENT ADDR=203.0.113.9'],
]

/** Commands after EHLO of an authorized client. */
const XFORWARDS: readonly (readonly string[])[] = [
  ['XFORWARD'],
  ['XFORWARD NAME=spike.test ADDR=203.0.113.9 PROTO=ESMTP', 'XFORWARD HELO=spike.test IDENT=ABC123'],
  ['xforward addr=IPV6:2001:DB8:0::1 port=25'],
  ['XFORWARD ADDR=[UNAVAILABLE] NAME=spike.test'],
  ['XFORWARD NAME=[UNAVAILABLE]'],
  ['XFORWARD NAME=[TEMPUNAVAIL]'],
  ['XFORWARD NAME=a+40b'],
  ['XFORWARD NAME=1.2.3.4'],
  ['XFORWARD ADDR=203.0.113'],
  ['XFORWARD ADDR=2001:db8::1'],
  ['XFORWARD PORT=x'],
  ['XFORWARD PORT=[UNAVAILABLE]'],
  [`XFORWARD PROTO=${'x'.repeat(65)}`],
  [`XFORWARD PROTO=${'x'.repeat(64)}`],
  ['XFORWARD PROTO=[UNAVAILABLE]'],
  ['XFORWARD HELO=a+3Cb'],
  ['XFORWARD HELO=[UNAVAILABLE]'],
  ['XFORWARD IDENT=a+20b'],
  ['XFORWARD IDENT=[UNAVAILABLE]'],
  ['XFORWARD IDENT=ABC', 'XFORWARD IDENT=[UNAVAILABLE]'],
  ['XFORWARD SOURCE=LOCAL'],
  ['XFORWARD SOURCE=remote'],
  ['XFORWARD SOURCE=[UNAVAILABLE]'],
  ['XFORWARD SOURCE=x'],
  ['XFORWARD DOMAIN=x'],
  ['XFORWARD ADDR'],
  [`XFORWARD NAME=${LONG}`],
  ['XFORWARD ADDR=203.0.113.9', 'RSET'],
  ['XFORWARD ADDR=203.0.113.9', 'EHLO x'],
  ['XFORWARD ADDR=203.0.113.9', 'NOOP'],
]

/** The log line of the client of a message. */
function clientLine(system: System, n: number): string | undefined {
  const id = system.log().flatMap((line) => (line.includes(`to=<c@s${n}.test>`) ? (/^\S+: (\w+): /.exec(line)?.[1] ?? []) : []))[0]
  const line = system.log().find((one) => one.startsWith(`smtpd: ${id}: client=`))
  return line?.replace(String(id), 'ID')
}

/** A header field of a delivered message. */
const headerLine = (system: System, n: number, name: string): string | undefined =>
  system.received
    .find(({ recipients }) => recipients.includes(`c@s${n}.test`))
    ?.content.toString('latin1')
    .split('\r\n')
    .find((line) => line.startsWith(`${name}: `))

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
  describe('to XCLIENT', () => {
    const settings = { smtpd_authorized_xclient_hosts: '127.0.0.1, 127.0.0.2', inet_protocols: 'all' }
    const { both } = pairFor({ settings })

    test.each(XCLIENTS)('reply alike: %j', async (...commands) => {
      const lines = ['EHLO x', ...commands, ...AFTER]
      const [deferd, postfix] = await both(({ port }) => converse(port, Buffer.alloc(0), lines))
      expect(deferd).toEqual(postfix)
      expect(deferd.slice(0, 2)).toEqual([expect.stringMatching(/^220 /), expect.stringContaining('250-XCLIENT NAME ADDR ')])
    })

    test.each([
      ['', ['RCPT TO:<c@far.test>', 'RCPT TO:<c@open.test>']],
      [' LOGIN=ann+40b.test', ['RCPT TO:<c@open.test>']],
    ])('log and deliver mail alike%s', async (login, recipients) => {
      const name = login === '' ? 'outside.test' : 'login.test'
      const lines = [
        'EHLO x',
        'XCLIENT ADDR=127.0.0.2 NAME=inside.test LOGIN=bob',
        `XCLIENT ADDR=203.0.113.9 NAME=${name} HELO=its.helo PROTO=ESMTP${login}`,
        'MAIL FROM:<a@b.test>',
        ...recipients,
        'DATA',
        'Subject: x\r\n\r\nx\r\n.',
        'QUIT',
      ]
      const found = await both(async (system) => {
        await converse(system.port, Buffer.alloc(0), lines)
        await expect.poll(() => system.received.some(({ content }) => content.includes(name))).toBe(true)
        await settled([system], 500)
        const mail = system.received.find(({ content }) => content.includes(name))
        const received = /^Received: from ([^\r]*)\r\n\tby [^\r]* with (\S+) id/m.exec(mail?.content.toString('latin1') ?? '')
        const log = system.log().filter((line) => / client=|reject: RCPT/.test(line) && line.includes(`${name}[203.0.113.9]`))
        return { received: received?.slice(1), log: log.map((line) => line.replace(/: \w+: client/, ': ID: client')) }
      })
      expect(found[0]).toEqual(found[1])
      expect(found[0].received).toEqual([`its.helo (${name} [203.0.113.9])`, login === '' ? 'ESMTP' : 'ESMTPA'])
      expect(found[0].log).toHaveLength(recipients.length)
    })
  })

  describe('to XFORWARD', () => {
    const settings = { smtpd_authorized_xforward_hosts: '127.0.0.1', inet_protocols: 'all' }
    const { both } = pairFor({ settings })

    test('reply alike', async () => {
      for (const commands of XFORWARDS) {
        const lines = ['EHLO x', ...commands, 'MAIL FROM:<a@b.test>', 'XFORWARD PORT=25', 'QUIT']
        const [deferd, postfix] = await both(({ port }) => converse(port, Buffer.alloc(0), lines))
        expect({ commands, replies: deferd }).toEqual({ commands, replies: postfix })
        expect(deferd[1]).toContain('250-XFORWARD NAME ADDR PROTO HELO SOURCE PORT IDENT')
      }
    })

    test('log and deliver mail alike', async () => {
      const found = await both(async (system) => {
        let accepted = 0
        for (const [n, commands] of XFORWARDS.entries()) {
          const envelope = ['MAIL FROM:<a@b.test>', `RCPT TO:<c@s${n}.test>`, 'DATA', `Subject: ${n}\r\nTo: ann\r\n\r\nx\r\n.`, 'QUIT']
          const replies = await converse(system.port, Buffer.alloc(0), ['EHLO x', ...commands, ...envelope])
          if (replies.some((reply) => reply.includes('queued as'))) accepted++
        }
        await expect
          .poll(() => system.received.filter(({ recipients }) => recipients.some((one) => /^c@s\d/.test(one))).length)
          .toBe(accepted)
        await settled([system], 1000)
        return XFORWARDS.map((commands, n) => ({ commands, log: clientLine(system, n), to: headerLine(system, n, 'To') }))
      })
      expect(found[0]).toEqual(found[1])
      expect(found[0].filter(({ log }) => log?.includes('orig_client='))).not.toEqual([])
    })
  })

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

/** Headers of the PROXY protocol: every prefix, any continuation and wild bytes. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalAddress } from '../../src/config/values/networks.ts'
import { parseProxyHeader } from '../../src/smtpd/stream/proxy-header.ts'

const SIGNATURE = '0d0a0d0a000d0a515549540a'
const line = (text: string): Buffer => Buffer.from(text, 'latin1')
/** A version 2 header with version and command, family and addresses in hexadecimal digits. */
const binary = (command: string, addresses: string, length = addresses.length / 2): Buffer =>
  Buffer.from(`${SIGNATURE}${command}${length.toString(16).padStart(4, '0')}${addresses}`, 'hex')

const IPV4 = 'c00002010a00000ad9030019'
const IPV6 = `20010db8${'0'.repeat(23)}1${'0'.repeat(31)}1d9030019`

test.each([
  ['IPv4', 'PROXY TCP4 192.0.2.1 10.0.0.10 55555 25\r\n', '192.0.2.1'],
  ['IPv6', 'PROXY TCP6 2001:DB8:0::1 ::1 55555 25\r\n', '2001:db8::1'],
  ['an IPv4-mapped address', 'PROXY TCP6 ::ffff:192.0.2.1 ::1 1 65535\r\n', '192.0.2.1'],
])('version 1 with %s', (_form, text, client) => {
  expect(parseProxyHeader(line(`${text}EHLO x\r\n`))).toEqual({ kind: 'complete', length: text.length, client })
})

test.each([
  ['PROXY UNKNOWN\r\n', 'bad or missing protocol type'],
  ['PROXY \r\n', 'bad or missing protocol type'],
  ['PROXY TCP4 2001:db8::1 10.0.0.10 1 25\r\n', 'bad or missing client address'],
  ['PROXY TCP6 192.0.2.1 ::1 1 25\r\n', 'bad or missing client address'],
  ['PROXY TCP4 192.0.2.256 10.0.0.10 1 25\r\n', 'bad or missing client address'],
  ['PROXY TCP4 192.0.2.1 relay 1 25\r\n', 'bad or missing server address'],
  ['PROXY TCP4 192.0.2.1 10.0.0.10 1 65536\r\n', 'bad or missing port'],
  ['PROXY TCP4 192.0.2.1 10.0.0.10 1\r\n', 'bad or missing port'],
  ['PROXY TCP4 192.0.2.1 10.0.0.10 1 25 26\r\n', 'bad or missing port'],
  [`PROXY TCP4 ${'1'.repeat(200)}\r\n`, 'missing protocol header terminator'],
  ['EHLO client.example\r\n', 'unrecognized protocol header'],
  ['proxy TCP4 192.0.2.1 10.0.0.10 1 25\r\n', 'unrecognized protocol header'],
])('%j is malformed: %s', (text, why) => {
  expect(parseProxyHeader(line(text))).toEqual({ kind: 'malformed', why })
})

test('version 2 over IPv4 and IPv6, with type-length-value fields', () => {
  expect(parseProxyHeader(binary('2111', IPV4))).toEqual({ kind: 'complete', length: 28, client: '192.0.2.1' })
  expect(parseProxyHeader(binary('2121', `${IPV6}0400021234`))).toEqual({ kind: 'complete', length: 57, client: '2001:db8::1' })
})

test.each([
  ['LOCAL', '2000'],
  ['LOCAL with addresses', '2011'],
  ['PROXY with the family UNSPEC', '2100'],
])('version 2: %s keeps the address of the connection', (_form, command) => {
  expect(parseProxyHeader(binary(command, IPV4))).toEqual({ kind: 'complete', length: 28, client: null })
})

test.each([
  ['1111', 12, 'unrecognized protocol version'],
  ['2211', 12, 'bad command in proxy header'],
  ['2112', 12, 'unsupported network protocol'],
  ['2131', 12, 'unsupported network protocol'],
  ['2111', 11, 'short address field'],
  ['2121', 35, 'short address field'],
  ['2111', 5000, 'too long a protocol header'],
])('version 2 with command %s and length %i is malformed: %s', (command, length, why) => {
  expect(parseProxyHeader(binary(command, IPV4, length))).toEqual({ kind: 'malformed', why })
})

const port = fc.nat(65_535)
const headers = fc.oneof(
  fc.tuple(fc.ipV4(), fc.ipV4(), port, port).map(([client, server, from, to]) => ({
    client: canonicalAddress(client),
    bytes: line(`PROXY TCP4 ${client} ${server} ${from} ${to}\r\n`),
  })),
  fc.tuple(fc.ipV6(), fc.ipV6(), port, port).map(([client, server, from, to]) => ({
    client: canonicalAddress(client),
    bytes: line(`PROXY TCP6 ${client} ${server} ${from} ${to}\r\n`),
  })),
  fc.tuple(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.uint8Array({ maxLength: 500 })).map(([client, fields]) => ({
    client: client.join('.'),
    bytes: binary('2111', `${Buffer.from(client).toString('hex')}7f00000100010019${Buffer.from(fields).toString('hex')}`),
  })),
)

test('a header is complete at its last octet, whatever follows it', () => {
  fc.assert(
    fc.property(headers, fc.uint8Array({ maxLength: 200 }), ({ client, bytes }, after) => {
      expect(parseProxyHeader(Buffer.concat([bytes, after]))).toEqual({ kind: 'complete', length: bytes.length, client })
      for (let length = 0; length < bytes.length; length++) {
        expect(parseProxyHeader(bytes.subarray(0, length))).toEqual({ kind: 'incomplete' })
      }
    }),
    { numRuns: 100 },
  )
})

test('wild bytes give a verdict that more bytes do not change, within a bounded length', () => {
  const start = fc.constantFrom(Buffer.alloc(0), line('PROXY '), line('PROXY TCP4 1.2.3.4 '), Buffer.from(`${SIGNATURE}21`, 'hex'))
  fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 300 }), (first, wild, more) => {
      const verdict = parseProxyHeader(Buffer.concat([first, wild]))
      if (verdict.kind !== 'incomplete') expect(parseProxyHeader(Buffer.concat([first, wild, more]))).toEqual(verdict)
      else expect(parseProxyHeader(Buffer.concat([first, wild, Buffer.alloc(4200)])).kind).not.toBe('incomplete')
    }),
  )
})

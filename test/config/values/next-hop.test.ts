import { describe, expect, test } from 'vitest'
import { formatNextHop, parseNextHop } from '../../../src/config/values/next-hop.ts'

const parse = (text: string, mx = true) => parseNextHop(text, { port: 25, origin: 'relayhost', mx })

describe('a next hop', () => {
  test.each([
    ['Hub.Example', 'hub.example', 25, true, 'hub.example'],
    ['hub.example:587', 'hub.example', 587, true, 'hub.example:587'],
    ['[hub.example]', 'hub.example', 25, false, '[hub.example]:25'],
    ['[hub.example]:587', 'hub.example', 587, false, '[hub.example]:587'],
    ['[hub.example]:submission', 'hub.example', 587, false, '[hub.example]:587'],
    ['hub.example:SMTP', 'hub.example', 25, true, 'hub.example'],
    ['[192.0.2.1]', '192.0.2.1', 25, false, '[192.0.2.1]:25'],
    ['[IPv6:2001:db8::1]:2525', '2001:db8::1', 2525, false, '[2001:db8::1]:2525'],
    ['[2001:db8::1]', '2001:db8::1', 25, false, '[2001:db8::1]:25'],
  ])('%s', (text, host, port, mx, formatted) => {
    const hop = parse(text)
    expect(hop).toEqual({ host, port, mx, origin: 'relayhost' })
    expect(hop && formatNextHop(hop, 25)).toBe(formatted)
  })

  test('without MX records, as for LMTP', () => {
    expect(parse('hub.example', false)).toMatchObject({ host: 'hub.example', mx: false })
  })

  test('a Unix socket is formatted, and never parsed', () => {
    expect(formatNextHop({ host: '/run/lmtp.sock', port: 0, mx: false, origin: 'transport_maps' }, 24)).toBe('unix:/run/lmtp.sock')
    expect(parse('/run/lmtp.sock')).toBeUndefined()
    expect(parse('[/run/lmtp.sock]')).toBeUndefined()
  })

  test.each(['', 'a b', '[a', 'a]', 'a:', 'a:0', 'a:65536', 'a:b', '[]', '2001:db8::1'])('%j is not one', (text) => {
    expect(parse(text)).toBeUndefined()
  })
})

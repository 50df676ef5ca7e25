import { expect, test } from 'vitest'
import { parseNextHops, parseTransport } from '../../src/config/transport-map.ts'

const parse = (text: string) => parseTransport(text, { smtp_tcp_port: 25 })
const hop = (host: string, port: number, mx: boolean) => ({ host, port, mx, origin: 'transport_maps' })

test.each([
  ['smtp:', { kind: 'smtp', nexthops: [] }],
  ['smtp:hub.example', { kind: 'smtp', nexthops: [hop('hub.example', 25, true)] }],
  ['SMTP: [a.example]:26, b.example', { kind: 'smtp', nexthops: [hop('a.example', 26, false), hop('b.example', 25, true)] }],
  [':[hub.example]:submission', { kind: 'smtp', nexthops: [hop('hub.example', 587, false)] }],
  ['relay:[hub.example]', { kind: 'smtp', nexthops: [hop('hub.example', 25, false)] }],
  ['', { kind: 'unchanged' }],
  [':', { kind: 'unchanged' }],
  ['retry:', { kind: 'error', status: '4.0.0', text: 'Address is undeliverable' }],
  ['retry:4.3.2 closed', { kind: 'error', status: '4.3.2', text: 'closed' }],
  ['lmtp:hub.example', { kind: 'lmtp', nexthops: [hop('hub.example', 24, false)] }],
  ['lmtp:inet:hub.example:2424', { kind: 'lmtp', nexthops: [hop('hub.example', 2424, false)] }],
  ['lmtp:unix:/run/lmtp.sock', { kind: 'lmtp', nexthops: [hop('/run/lmtp.sock', 0, false)] }],
  ['discard:', { kind: 'discard', text: '' }],
  ['discard: test mail', { kind: 'discard', text: 'test mail' }],
  ['error:5.1.1 no such domain', { kind: 'error', status: '5.1.1', text: 'no such domain' }],
  ['error:4.3.0', { kind: 'error', status: '4.3.0', text: 'Address is undeliverable' }],
  ['error:moved', { kind: 'error', status: '5.0.0', text: 'moved' }],
  ['error:', { kind: 'error', status: '5.0.0', text: 'Address is undeliverable' }],
])('%s', (text, transport) => expect(parse(text)).toEqual(transport))

test.each(['hub.example', '[hub.example]', 'smtp:a:nosuchservice', 'pipe:x', 'smtp:[a', 'smtp:a:0', 'lmtp:unix:run/lmtp.sock'])(
  '%j is refused',
  (text) => {
    expect(() => parse(text)).toThrow(/^transport_maps: /)
  },
)

test('a list of next hops names its parameter in an error', () => {
  expect(() => parseNextHops(['a.example', '[b'], 'smtp_fallback_relay', 25, true)).toThrow(
    'smtp_fallback_relay: "[b" is not a next hop like "[host]:port" or "domain"',
  )
})

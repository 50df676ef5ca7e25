/** Headings of [destination."…"] tables: the destinations to which they apply, and those that apply to none. */
import { expect, test } from 'vitest'
import { unusedHeadings } from '../../src/config/destination-headings.ts'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { configFrom, ConfigError } from '../../src/config/load.ts'
import { Router } from '../../src/delivery/routing/router.ts'

const SETTINGS = { destination_concurrency_limit: 2 }
const configWith = (headings: readonly string[], more: Readonly<Record<string, unknown>> = {}) =>
  configFrom({ ...more, destination: Object.fromEntries(headings.map((heading) => [heading, SETTINGS])) }, 'relay.example').config

/** The heading that applies to mail for an address. */
function tableOf(headings: readonly string[], address: string, more: Readonly<Record<string, unknown>>): string | null {
  const config = configWith(headings, more)
  return new DestinationPolicies(config).for(new Router(config, new Map()).route(address, '').destination).table
}

const TO_HOST = { transport_maps: { 'far.example': 'smtp:[127.0.0.1]:2526' } }

test.each([
  ['smtp:[127.0.0.1]:2526', TO_HOST],
  ['[127.0.0.1]:2526', TO_HOST],
  ['[127.0.0.1]:2526', { relayhost: '[127.0.0.1]:2526' }],
  ['[127.0.0.1]:2526', { transport_maps: { '*': 'lmtp:[127.0.0.1]:2526' } }],
  ['[Hub.example]', { relayhost: '[hub.example]' }],
  ['[hub.example]:25', { relayhost: '[hub.example]' }],
  ['[hub.example]', { transport_maps: { '*': 'lmtp:hub.example' } }],
  ['hub.example:587', { relayhost: 'hub.example:submission' }],
  ['hub.example', { relayhost: 'hub.example' }],
  ['a.example,[b.example]:26', { relayhost: 'a.example, [b.example]:26' }],
  ['unix:/run/lmtp.sock', { transport_maps: { '*': 'lmtp:unix:/run/lmtp.sock' } }],
  ['[192.0.2.1]', {}],
])('[destination.%j] applies to mail with %j', (heading, more) => {
  const lower = heading.toLowerCase()
  const address = lower === '[192.0.2.1]' ? 'ann@[192.0.2.1]' : 'ann@far.example'
  expect(tableOf([heading], address, more)).toBe(lower)
  expect(unusedHeadings(configWith([heading], more))).toEqual([])
})

test('the table of a destination with its transport comes before that of the next hop alone', () => {
  expect(tableOf(['[127.0.0.1]:2526', 'smtp:[127.0.0.1]:2526'], 'ann@far.example', TO_HOST)).toBe('smtp:[127.0.0.1]:2526')
  expect(tableOf(['[127.0.0.1]', '[127.0.0.1]:2526', 'lmtp:[127.0.0.1]:2526'], 'ann@far.example', TO_HOST)).toBe('[127.0.0.1]:2526')
})

test('a next hop at another port, or another host, has no table', () => {
  for (const heading of ['[127.0.0.1]:2527', '[127.0.0.2]:2526', '[127.0.0.1]', '127.0.0.1:2526'])
    expect(tableOf([heading], 'ann@far.example', TO_HOST)).toBeNull()
})

const NOTHING = 'is no recipient domain, .parent or next hop'
test.each([
  ['*', `${NOTHING}: set a parameter for all destinations outside of the tables`],
  ['*.far.example', `${NOTHING}: write ".far.example"`],
  ['far.example.', `${NOTHING}: write "far.example"`],
  ['Bücher.example', `${NOTHING}: write "xn--bcher-kva.example"`],
  ['.Bücher.example', `${NOTHING}: write ".xn--bcher-kva.example"`],
  ['ann@far.example', `${NOTHING}: write "far.example"`],
  ['smtp:hub.example', `${NOTHING}: write "hub.example"`],
  ['hub.example:25', `${NOTHING}: write "hub.example"`],
  ['smtp:[hub.example]', `${NOTHING}: write "smtp:[hub.example]:25"`],
  ['relay:[hub.example]:26', `${NOTHING}: write "smtp:[hub.example]:26"`],
  ['[hub.example]:submission', `${NOTHING}: write "smtp:[hub.example]:587"`],
  ['lmtp:hub.example:24', `${NOTHING}: write "lmtp:[hub.example]:24"`],
  ['a.example, b.example', `${NOTHING}: write "smtp:a.example,b.example"`],
  ['pigeon:coop', NOTHING],
  ['[hub.example', NOTHING],
  ['far example', NOTHING],
  ['.', NOTHING],
  ['', NOTHING],
])('[destination.%j] is refused', (heading, text) => {
  expect(() => configWith([heading])).toThrow(
    new ConfigError([{ where: `destination.${heading}`, text: `destination."${heading}" ${text}` }]),
  )
})

const KEPT = { relayhost: '[hub.example]:587', transport_maps: { 'a.example': 'lmtp:[127.0.0.1]:24', 'b.example': 'discard:' } }
test.each<[heading: string, more: Readonly<Record<string, unknown>>]>([
  ['[127.0.0.1]:2526', {}],
  ['[hub.example]:26', KEPT],
  ['lmtp:[hub.example]:588', KEPT],
  ['smtp:a.example,b.example', KEPT],
  ['error:b.example', KEPT],
  ['[192.0.2.1]:26', {}],
  ['smtp:[192.0.2.1]:25', { smtp_tcp_port: '26' }],
  ['[fallback.example]:25', { smtp_fallback_relay: '[fallback.example]' }],
])('[destination.%j] is unused with %j', (heading, more) => {
  expect(unusedHeadings(configWith([heading, 'far.example', '.far.example'], more))).toEqual([heading])
})

test.each<[heading: string, more: Readonly<Record<string, unknown>>]>([
  ['[hub.example]:587', KEPT],
  ['lmtp:[hub.example]:587', KEPT],
  ['lmtp:[127.0.0.1]:24', KEPT],
  ['discard:b.example', KEPT],
  ['smtp:[192.0.2.1]:25', {}],
  ['[192.0.2.1]:25', {}],
  ['lmtp:far.example', { transport_maps: { '@far.example': 'lmtp:' } }],
  ['[hub.example]:26', { transport_maps: 'texthash:/etc/deferd/transport' }],
  ['[hub.example]:26', { transport_maps: 'inline:{far.example=smtp:[hub.example]:26}' }],
  ['[hub.example]:26', { sender_dependent_relayhost_maps: { 'app@us.example': '[hub.example]:26' } }],
  ['[hub.example]:26', { sender_dependent_default_transport_maps: 'static:smtp:[hub.example]:26' }],
  ['[hub.example]:26', { sender_dependent_relayhost_maps: 'regexp:/etc/deferd/senders' }],
])('[destination.%j] may be used with %j', (heading, more) => {
  expect(unusedHeadings(configWith([heading], more))).toEqual([])
})

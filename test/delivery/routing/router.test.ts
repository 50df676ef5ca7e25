import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { Router } from '../../../src/delivery/routing/router.ts'
import { openRoutingTables } from '../../../src/delivery/routing/routing-tables.ts'
import { SmtpAgentHarness, testConfig } from '../../support/smtp-agent-harness.ts'

const router = (maps: Record<string, string> = {}, tables: readonly string[] = [], ...config: string[]) =>
  new Router(
    testConfig(config, {
      transport_maps: new Map(Object.entries(maps)),
      destination: new Map(tables.map((name) => [name, { smtp_mx_session_limit: 7 }])),
    }),
    new Map(),
  )
const names = (of: Router, ...addresses: string[]) => addresses.map((address) => of.route(address, '').destination)

describe('names of destinations', () => {
  test('mail to the exchangers of a domain: the bare domain, in lower case', () => {
    expect(names(router(), 'ann@Example.NET', 'bob@sub.example.net')).toEqual(['example.net', 'sub.example.net'])
  })

  test('other transports: transport and next hop', () => {
    expect(names(router({}, [], 'relayhost=[Relay.example]:587'), 'a@b.example')).toEqual(['smtp:[relay.example]:587'])
    expect(names(router({}, [], 'relayhost=[relay.example]'), 'a@b.example')).toEqual(['smtp:[relay.example]:25'])
    expect(names(router({}, [], 'relayhost=relay.example'), 'a@b.example')).toEqual(['relay.example'])
    expect(names(router({}, [], 'relayhost=[a.example], [b.example]:26'), 'a@b.example')).toEqual(['smtp:[a.example]:25,[b.example]:26'])
    expect(names(router(), 'a@[192.0.2.1]', 'a@[IPv6:2001:db8::1]')).toEqual(['smtp:[192.0.2.1]:25', 'smtp:[2001:db8::1]:25'])
  })

  test('a domain with its own table is its own destination, also behind a relayhost', () => {
    const behind = router({}, ['gmail.com', '.example.org'], 'relayhost=[relay.example]')
    expect(names(behind, 'a@gmail.com', 'a@sub.example.org', 'a@example.org')).toEqual([
      'gmail.com',
      'sub.example.org',
      'smtp:[relay.example]:25',
    ])
    expect(behind.route('a@gmail.com', '')).toMatchObject({ nexthops: [{ host: 'relay.example', mx: false }] })
  })
})

describe('transport_maps as lookup tables', () => {
  const ofTables = (text: string): Router => {
    const config = configFrom({ transport_maps: text }, 'relay.example').config
    return new Router(config, openRoutingTables(config).tables)
  }

  test('keys are those of the TOML table', () => {
    const of = ofTables(
      'inline:{{a.example = smtp:[one.example]} {.b.example = smtp:[two.example]} {ann@a.example = discard:} {* = smtp:[all.example]}}',
    )
    expect(names(of, 'x@a.example', 'x@sub.b.example', 'Ann@a.example', 'x@c.example')).toEqual([
      'smtp:[one.example]:25',
      'smtp:[two.example]:25',
      'discard:a.example',
      'smtp:[all.example]:25',
    ])
  })

  test('patterns match the whole address only', () => {
    const of = ofTables('regexp:{{/^vip-.*@a\\.example$/ smtp:[vip.example]} {/^b\\.example$/ discard:}}')
    expect(names(of, 'vip-1@A.example', 'x@a.example', 'x@b.example')).toEqual(['smtp:[vip.example]:25', 'a.example', 'b.example'])
  })

  test('an entry of a pattern that is no transport defers its mail', () => {
    const of = ofTables('regexp:{{/@a/ pigeon:coop}}')
    expect(of.route('x@a.example', '')).toMatchObject({ transport: 'error', status: '4.3.5', text: expect.stringContaining('pigeon:coop') })
    expect(of.route('x@b.example', '')).toMatchObject({ transport: 'smtp', destination: 'b.example' })
  })

  test('an entry of the configuration that is no transport refuses it', () => {
    expect(() => ofTables('inline:{a.example=pigeon:coop}')).toThrow('names no transport')
  })
})

describe('transport_maps', () => {
  const maps = router({
    'example.com': 'smtp:[127.0.0.1]:2526',
    '.example.com': 'smtp:[127.0.0.2]:2526',
    '.sub.example.com': 'smtp:other.example',
    'direct.example': 'smtp:',
    'void.example': 'discard:',
    'gone.example': 'error:5.1.2 moved away',
    'store.example': 'lmtp:unix:/run/lmtp',
    '*': 'smtp:[10.0.0.1]',
  })

  test('the domain, its parents longest first, then *', () => {
    expect(names(maps, 'a@example.com', 'a@x.example.com', 'a@x.sub.example.com', 'a@elsewhere.example')).toEqual([
      'smtp:[127.0.0.1]:2526',
      'smtp:[127.0.0.2]:2526',
      'other.example',
      'smtp:[10.0.0.1]:25',
    ])
  })

  test('an empty next hop is the domain itself', () => {
    expect(maps.route('a@direct.example', '')).toMatchObject({
      destination: 'direct.example',
      nexthops: [{ mx: true, origin: 'recipient' }],
    })
  })

  test('replies to double-bounce notices are discarded', () => {
    const routes = router({}, [], 'relayhost=[192.0.2.1]')
    expect(routes.route('Double-Bounce@relay.us.example', '')).toMatchObject({
      transport: 'discard',
      text: 'undeliverable postmaster notification',
    })
    expect(routes.route('double-bounce@us.example', '')).toMatchObject({ transport: 'smtp' })
    expect(routes.route('ann@relay.us.example', '')).toMatchObject({ transport: 'smtp' })
  })

  test('discard, error and LMTP', async () => {
    expect(maps.route('a@void.example', '')).toMatchObject({ transport: 'discard', destination: 'discard:void.example' })
    expect(maps.route('a@gone.example', '')).toMatchObject({ transport: 'error', status: '5.1.2', text: 'moved away' })
    expect(maps.route('a@store.example', '')).toMatchObject({ transport: 'lmtp', destination: 'lmtp:unix:/run/lmtp' })
    const world = new SmtpAgentHarness({
      tables: {
        transport_maps: new Map([
          ['a.example', 'discard:'],
          ['b.example', 'error:4.2.1 later'],
        ]),
        destination: new Map(),
      },
    })
    expect((await world.deliver({ to: ['x@a.example'] })).of()).toMatchObject({ outcome: 'delivered', status: '2.0.0' })
    expect((await world.deliver({ to: ['x@b.example'] })).of()).toMatchObject({ outcome: 'deferred', status: '4.2.1', reason: 'later' })
  })

  test.each(['pipe:x', 'smtp:[a', 'smtp:a:0', 'smtp:a:99999', 'nothing'])('%j is refused at start', (text) => {
    expect(() => router({ 'example.com': text })).toThrow(/transport_maps/)
  })
})

describe('several next hops', () => {
  test('the next hops of relayhost are tried in order, then the fallback relays', async () => {
    const world = new SmtpAgentHarness({ config: ['relayhost=[a.example], [192.0.2.2]', 'smtp_fallback_relay=[192.0.2.3]'] })
    world.host('c', '192.0.2.3')
    expect((await world.deliver({ to: ['ann@example.net'] })).of().outcome).toBe('delivered')
    expect(world.dialled).toEqual(['192.0.2.2', '192.0.2.3'])
  })

  test('a fallback relay is used when no host is found, but not after a rejection, for a mail loop or a null MX', async () => {
    const config = ['smtp_fallback_relay=[192.0.2.3]', 'smtpd_listen=192.0.2.9:25']
    const lost = new SmtpAgentHarness({ config })
    lost.host('c', '192.0.2.3')
    expect((await lost.deliver({ to: ['ann@example.net'] })).of().outcome).toBe('delivered')
    const refused = new SmtpAgentHarness({ config }).mx('example.net', [10, 'mx'])
    refused.host('mx', '192.0.2.1', { rcpt: '550 no' })
    expect((await refused.deliver({ to: ['ann@example.net'] })).of().outcome).toBe('bounced')
    for (const exchange of ['us.example', '']) {
      const closed = new SmtpAgentHarness({ config }).mx('example.net', [10, exchange]).addresses('us.example', '192.0.2.9')
      expect((await closed.deliver({ to: ['ann@example.net'] })).of().outcome).toBe('bounced')
      expect(closed.dialled).toEqual([])
    }
  })

  test('a fallback relay is tried after MX names without an address and after smtp_mx_session_limit', async () => {
    const config = ['smtp_fallback_relay=[192.0.2.3]', 'smtp_mx_session_limit=1']
    const refused = new SmtpAgentHarness({ config }).mx('example.net', [10, 'a.example.net'])
    refused.host('a.example.net', '192.0.2.1', { rcpt: '451 4.7.1 later' })
    refused.host('192.0.2.3', '192.0.2.3')
    expect(await refused.deliver({ to: ['x@example.net'] })).toMatchObject({ relay: '192.0.2.3[192.0.2.3]:25' })
    const dead = new SmtpAgentHarness({ config }).mx('example.net', ...Array.from({ length: 40 }, (_, i) => [i, `dead${i}`] as const))
    dead.host('192.0.2.3', '192.0.2.3')
    expect((await dead.deliver({ to: ['x@example.net'] })).of().outcome).toBe('delivered')
  })

  test('an MX host after four names without an address is found', async () => {
    const world = new SmtpAgentHarness().mx('example.net', [1, 'a'], [2, 'b'], [3, 'c'], [4, 'd'], [5, 'e'])
    world.host('e', '192.0.2.5')
    expect(await world.deliver({ to: ['x@example.net'] })).toMatchObject({ relay: 'e[192.0.2.5]:25' })
  })

  test('a fallback relay that does not exist is a local error', async () => {
    const world = new SmtpAgentHarness({ config: ['smtp_fallback_relay=[relay.example]'] })
    expect((await world.deliver({ to: ['ann@example.net'] })).of()).toMatchObject({ outcome: 'deferred', status: '4.3.5' })
  })
})

test('an entry of transport_maps for a full address is looked up first, whatever the case of the address', () => {
  const addresses = new Router(
    testConfig([], {
      transport_maps: new Map(
        Object.entries({
          'example.net': 'smtp:[192.0.2.1]',
          'ann@example.net': 'smtp:[192.0.2.2]',
          'bob@example.net': 'error:5.7.1 closed',
        }),
      ),
    }),
    new Map(),
  )
  const destinations = ['Ann@Example.net', 'eve@example.net', 'bob@example.net'].map((address) => addresses.route(address, '').destination)
  expect(destinations).toEqual(['smtp:[192.0.2.2]:25', 'smtp:[192.0.2.1]:25', 'error:example.net'])
})

test('an entry of transport_maps for an address is also that of the address with an extension, after one of its own', () => {
  const of = router(
    { 'ann@far.example': 'smtp:[a]', 'ann+x@far.example': 'smtp:[b]', 'far.example': 'smtp:[c]' },
    [],
    'recipient_delimiter=+',
  )
  const addresses = [
    'ann@far.example',
    'Ann+y@far.example',
    'ann+x@far.example',
    'ann+x+y@far.example',
    '+x@far.example',
    'bob+x@far.example',
  ]
  expect(names(of, ...addresses)).toEqual(['a', 'a', 'b', 'a', 'c', 'c'].map((host) => `smtp:[${host}]:25`))
  expect(names(router({ 'ann@far.example': 'smtp:[a]' }), 'ann+y@far.example')).toEqual(['far.example'])
})

test('a key of transport_maps for an address is written with its quotes or without', () => {
  const of = router({ '"a b"@far.example': 'smtp:[a]', 'c d@far.example': 'smtp:[b]' })
  expect(names(of, '"a b"@far.example', '"c d"@far.example')).toEqual(['smtp:[a]:25', 'smtp:[b]:25'])
})

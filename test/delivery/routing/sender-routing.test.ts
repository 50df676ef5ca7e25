/** Routes by sender (sender_dependent_relayhost_maps, sender_dependent_default_transport_maps). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { Router, type Route } from '../../../src/delivery/routing/router.ts'
import { openRoutingTables } from '../../../src/delivery/routing/routing-tables.ts'
import { SmtpAgentHarness } from '../../support/smtp-agent-harness.ts'

const FAR = 'eve@far.example'

function router(values: Readonly<Record<string, unknown>>): Router {
  const { config } = configFrom(values, 'relay.us.example')
  return new Router(config, openRoutingTables(config).tables)
}

const destinations = (of: Router, senders: readonly string[], recipient = FAR) =>
  senders.map((sender) => of.route(recipient, sender).destination)

describe('sender_dependent_relayhost_maps', () => {
  const maps = {
    relayhost: '[hub.example]',
    sender_dependent_relayhost_maps: {
      'ann@a.example': '[ann.example]:587',
      '@a.example': '[a.example]:587, [b.example]:587',
      '@mx.example': 'exchanger.example',
      '@c.example': 'DUNNO',
      '<>': '[notices.example]',
    },
  }

  test('the sender is looked up first, then its domain; relayhost has the rest', () => {
    const senders = ['Ann@A.example', 'bob@a.example', 'bob@sub.a.example', 'x@mx.example', 'x@c.example', '']
    expect(destinations(router(maps), senders)).toEqual([
      'smtp:[ann.example]:587',
      'smtp:[a.example]:587,[b.example]:587',
      'smtp:[hub.example]:25',
      'exchanger.example',
      'smtp:[hub.example]:25',
      'smtp:[notices.example]:25',
    ])
  })

  test('the sender is looked up without its extension too', () => {
    expect(destinations(router({ ...maps, recipient_delimiter: '+' }), ['ann+news@a.example'])).toEqual(['smtp:[ann.example]:587'])
  })

  test('transport_maps overrule it, except entries that leave the route as it is', () => {
    const transport_maps = {
      'far.example': 'smtp:[mapped.example]',
      'same.example': ':',
      'eve@same.example': '',
      '.direct.example': 'smtp:',
    }
    const of = router({ ...maps, transport_maps })
    const to = (recipient: string) => destinations(of, ['ann@a.example'], recipient)[0]
    expect([FAR, 'bob@same.example', 'eve@same.example', 'x@sub.direct.example'].map(to)).toEqual([
      'smtp:[mapped.example]:25',
      'smtp:[ann.example]:587',
      'smtp:[ann.example]:587',
      'sub.direct.example',
    ])
  })

  test('the relayhost is the destination, also for a recipient domain with a table of its own', () => {
    const of = router({ ...maps, destination: { 'far.example': { destination_concurrency_limit: 1 } } })
    expect(destinations(of, ['ann@a.example', 'other@us.example'])).toEqual(['smtp:[ann.example]:587', 'far.example'])
  })

  test('smtp_fallback_relay holds for it', () => {
    const route = router({ ...maps, smtp_fallback_relay: '[last.example]' }).route(FAR, 'ann@a.example') as Extract<
      Route,
      { nexthops: unknown }
    >
    expect(route).toMatchObject({ nexthops: [{ host: 'ann.example', port: 587 }], fallback: [{ host: 'last.example' }] })
  })
})

describe('sender_dependent_default_transport_maps', () => {
  const maps = {
    relayhost: '[hub.example]',
    relay_domains: 'ours.example',
    sender_dependent_default_transport_maps: {
      'app@a.example': 'smtp:[app.example]:587',
      '@a.example': 'lmtp:unix:/run/a',
      '@b.example': 'error:5.7.1 not from here',
      '@c.example': 'discard',
      '@d.example': 'smtp',
      '@e.example': 'DUNNO',
    },
    sender_dependent_relayhost_maps: { '@d.example': '[d.example]', 'app@a.example': '[unused.example]' },
  }

  test.each([
    ['app@a.example', { transport: 'smtp', destination: 'smtp:[app.example]:587' }],
    ['x@a.example', { transport: 'lmtp', destination: 'lmtp:unix:/run/a' }],
    ['x@b.example', { transport: 'error', status: '5.7.1', text: 'not from here' }],
    ['x@c.example', { transport: 'discard' }],
    ['x@d.example', { transport: 'smtp', destination: 'smtp:[d.example]:25' }],
    ['x@e.example', { transport: 'smtp', destination: 'smtp:[hub.example]:25' }],
    ['', { transport: 'smtp', destination: 'smtp:[hub.example]:25' }],
  ])('mail from <%s>', (sender, route) => expect(router(maps).route(FAR, sender)).toMatchObject(route))

  test('mail to relay_domains takes the route of other senders', () => {
    expect(destinations(router(maps), ['x@b.example'], 'eve@ours.example')).toEqual(['smtp:[hub.example]:25'])
    expect(destinations(router(maps), ['x@b.example'], 'eve@sub.ours.example')).toEqual(['smtp:[hub.example]:25'])
    expect(destinations(router(maps), ['x@b.example'], 'eve@notours.example')).toEqual(['error:notours.example'])
  })
})

test('a table in a file is read, and mail of a malformed line waits for the correction', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-sender-'))
  try {
    const file = join(folder, 'relayhosts')
    writeFileSync(file, '# relayhosts\n@a.example [192.0.2.1]\n@b.example [b\n')
    const far = new SmtpAgentHarness({ config: [`sender_dependent_relayhost_maps=texthash:${file}`] })
    far.host('a.example', '192.0.2.1')
    expect(await far.deliver({ to: [FAR], from: 'x@a.example' })).toMatchObject({ relay: '192.0.2.1[192.0.2.1]:25' })
    expect((await far.deliver({ to: [FAR], from: 'x@b.example' })).of()).toMatchObject({
      outcome: 'deferred',
      status: '4.3.5',
      reason: 'sender_dependent_relayhost_maps: "[b" is not a next hop like "[host]:port" or "domain"',
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a relayhost of a sender that does not exist defers, as relayhost does', async () => {
  const far = new SmtpAgentHarness({ config: ['sender_dependent_relayhost_maps=inline:{@a.example=[gone.example]}'] })
  expect((await far.deliver({ to: [FAR], from: 'x@a.example' })).of()).toMatchObject({ outcome: 'deferred', status: '4.3.5' })
})

test.each([
  [{ sender_dependent_relayhost_maps: { '@a.example': '[a' } }, 'sender_dependent_relayhost_maps: "[a" is not a next hop'],
  [{ sender_dependent_relayhost_maps: { '@a.example': ' ' } }, 'sender_dependent_relayhost_maps: a value is empty'],
  [{ sender_dependent_relayhost_maps: 'hash:/etc/postfix/x' }, 'deferd does not read hash: tables'],
  [{ sender_dependent_default_transport_maps: { '@a.example': ':[a]' } }, '":[a]" names no transport; write one, such as smtp:[host]:25'],
  [
    { sender_dependent_default_transport_maps: { '@a.example': 'uucp:x' } },
    'sender_dependent_default_transport_maps: "uucp:x" names no transport',
  ],
  [
    { sender_dependent_relayhost_maps: { '@a.example': '[2001:db8::1]' }, inet_protocols: 'ipv4' },
    'sender_dependent_relayhost_maps: 2001:db8::1 is an IPv6 address',
  ],
])('%j is refused', (values, text) => expect(() => router(values)).toThrow(text))

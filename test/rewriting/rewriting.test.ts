/** The order of lookups and of maps. test/interop/rewriting.test.ts compares them with Postfix. */
import { describe, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import type { EnvelopeRecipient } from '../../src/mail/envelope.ts'
import { AddressMap } from '../../src/rewriting/address-map.ts'
import { addressRules } from '../../src/rewriting/lookup-rules.ts'
import { LookupFailed } from '../../src/rewriting/lookup-table.ts'
import { Rewriting } from '../../src/rewriting/rewriting.ts'
import { ExpansionFailed } from '../../src/rewriting/virtual-aliases.ts'
import { openTables } from '../../src/rewriting/tables.ts'

function rewriting(values: Readonly<Record<string, unknown>>): Rewriting {
  const { config } = configFrom({ myorigin: 'us.test', ...values }, 'relay.test')
  const made = Rewriting.of(config, openTables(config).tables)
  if (made === null) throw new Error('no map is set')
  return made
}

const sender = (address: string, values: Readonly<Record<string, unknown>>) =>
  rewriting(values).envelope({ sender: address, recipients: [] }).sender

test('a table of patterns matches an address in the case in which it was given, with the quotes that it needs', () => {
  const seen: (string | undefined)[] = []
  const table = { name: 'canonical_maps', find: (_: string, whole?: string) => void seen.push(whole) }
  const map = new AddressMap(table, addressRules(configFrom({}, 'relay.test').config), true)
  for (const address of ['ann@Sub.TEST', 'eve.x@Sub.TEST', '"eve.x"@Sub.TEST', '"a b"@Sub.TEST']) map.all(address)
  expect(seen.filter((whole) => whole !== undefined)).toEqual(['ann@Sub.TEST', 'eve.x@Sub.TEST', 'eve.x@Sub.TEST', '"a b"@Sub.TEST'])
})

describe('a lookup of an address', () => {
  const canonical_maps = {
    'ann+x@a.test': 'full@r.test',
    'ann@a.test': 'bare@r.test',
    root: 'local@r.test',
    '@a.test': '@domain.test',
    '@b.test': 'all@r.test',
  }

  test.each([
    ['ann+x@a.test', 'full@r.test'],
    ['Ann+y@a.test', 'bare+y@r.test'],
    ['ann@a.test', 'bare@r.test'],
    ['eve+y@a.test', 'eve+y@domain.test'],
    ['root@us.test', 'local@r.test'],
    ['root+y@relay.test', 'local+y@r.test'],
    ['root@localhost', 'local@r.test'],
    ['root@b.test', 'all@r.test'],
    ['root@c.test', 'root@c.test'],
    ['', ''],
  ])('%s becomes %s', (given, result) => {
    expect(sender(given, { canonical_maps, recipient_delimiter: '+' })).toBe(result)
  })

  test('adds an extension without a key only where propagate_unmatched_extensions says so', () => {
    const values = { canonical_maps, recipient_delimiter: '+', propagate_unmatched_extensions: 'virtual' }
    expect(sender('ann+y@a.test', values)).toBe('bare@r.test')
  })

  test('splits no extension without recipient_delimiter', () =>
    expect(sender('ann+y@a.test', { canonical_maps })).toBe('ann+y@domain.test'))

  test('completes a value without a domain, and takes the first of several', () => {
    expect(sender('a@b.test', { canonical_maps: { 'a@b.test': 'c, d@e.test' } })).toBe('c@us.test')
  })

  test.each(['', ',', 'c@', 'x@-'])('that gives %j fails', (value) => {
    expect(() => sender('a@b.test', { canonical_maps: { 'a@b.test': value } })).toThrow(LookupFailed)
  })
})

describe('the maps', () => {
  const values = {
    sender_canonical_maps: { 'ann@a.test': 'ann@b.test' },
    canonical_maps: { 'ann@b.test': 'ann@sub.c.test' },
    masquerade_domains: ['c.test'],
  }

  test('of the role come first, then canonical_maps, then masquerade_domains', () => {
    expect(sender('ann@a.test', values)).toBe('ann@c.test')
    expect(rewriting(values).header?.('ann@a.test', 'sender')).toBe('ann@c.test')
    expect(rewriting(values).header?.('ann@a.test', 'recipient')).toBe('ann@a.test')
  })

  test('leave recipients to their classes, and keep the first address as ORCPT', () => {
    const recipients = [{ address: 'ann@b.test' }, { address: 'eve@b.test' }, { address: 'ann@b.test', orcpt: 'rfc822;x@y.test' }]
    expect(rewriting(values).recipients(recipients)).toEqual([
      { address: 'ann@sub.c.test', orcpt: 'rfc822;ann@b.test' },
      { address: 'eve@b.test' },
      { address: 'ann@sub.c.test', orcpt: 'rfc822;x@y.test' },
    ])
  })

  test('leave headers alone when no class names them', () => {
    expect(rewriting({ canonical_maps: { a: 'b' }, canonical_classes: 'envelope_sender' }).header).toBeUndefined()
  })

  test('to an international address ask for SMTPUTF8', () => {
    const envelope = { sender: 'a@b.test', recipients: [{ address: 'c@d.test' }] }
    expect(rewriting({ canonical_maps: { 'a@b.test': 'ä@b.test' } }).envelope(envelope)).toMatchObject({
      sender: 'ä@b.test',
      smtputf8: true,
    })
    expect(rewriting({ canonical_maps: { a: 'b' } }).envelope(envelope).smtputf8).toBeUndefined()
  })
})

describe('virtual_alias_maps', () => {
  const virtual_alias_maps = {
    'team@a.test': 'ann@a.test, bob@a.test, TEAM@a.test',
    'ann@a.test': 'ann@b.test',
    'loop@a.test': 'loop@b.test',
    'loop@b.test': 'loop@a.test',
    '@c.test': '@d.test',
  }
  const expanded = (recipients: readonly EnvelopeRecipient[], more: Readonly<Record<string, unknown>> = {}) =>
    rewriting({ virtual_alias_maps, ...more }).envelope({ sender: 's@a.test', recipients }).recipients

  test('replace a recipient by all addresses to which lookups lead', () => {
    expect(expanded([{ address: 'team@a.test' }]).map(({ address }) => address)).toEqual(['ann@b.test', 'bob@a.test', 'TEAM@a.test'])
    expect(expanded([{ address: 'x@c.test' }])).toEqual([{ address: 'x@d.test', orcpt: 'rfc822;x@c.test' }])
  })

  test('give a recipient one copy, and one for each address of the sender unless enable_original_recipient is no', () => {
    const recipients = [{ address: 'ann@a.test' }, { address: 'team@a.test' }, { address: 'ANN@b.test' }]
    const copies = (more: Readonly<Record<string, unknown>>) => expanded(recipients, more).filter(({ address }) => /^ann@b/i.test(address))
    expect(copies({})).toHaveLength(3)
    expect(copies({ enable_original_recipient: false })).toEqual([{ address: 'ann@b.test', orcpt: 'rfc822;ann@a.test' }])
  })

  test('pass on NOTIFY without SUCCESS, which the alias itself keeps', () => {
    const recipients = [{ address: 'ann@a.test', notify: ['success', 'failure'] as const, orcpt: 'rfc822;x@y.test' }]
    expect(expanded(recipients)).toEqual([
      { address: 'ann@a.test', notify: ['success'], orcpt: 'rfc822;x@y.test', alias: 'expanded' },
      { address: 'ann@b.test', notify: ['failure'], orcpt: 'rfc822;x@y.test' },
    ])
    expect(expanded([{ address: 'ann@a.test', notify: ['success'] }]).at(-1)?.notify).toBe('never')
    expect(expanded([{ address: 'bob@a.test', notify: ['success'] }])).toEqual([{ address: 'bob@a.test', notify: ['success'] }])
  })

  test.each([
    ['loop@a.test', {}, /^virtual_alias_maps: the expansion of loop@a\.test exceeds virtual_alias_recursion_limit; look for a loop/],
    ['team@a.test', { virtual_alias_expansion_limit: 2 }, /exceeds virtual_alias_expansion_limit/],
    ['ann@a.test', { virtual_alias_address_length_limit: 9 }, /exceeds virtual_alias_address_length_limit/],
  ])('fail for %s with %j', (address, limits, reason) => {
    expect(() => expanded([{ address }], limits)).toThrow(ExpansionFailed)
    expect(() => expanded([{ address }], limits)).toThrow(reason)
  })

  test('replace recipients of notices too', () => {
    expect(rewriting({ virtual_alias_maps, always_bcc: 'x@y.test' }).recipients([{ address: 'ann@a.test' }])).toEqual([
      { address: 'ann@b.test', orcpt: 'rfc822;ann@a.test' },
    ])
  })
})

describe('alias_maps', () => {
  const values = {
    alias_maps: {
      root: 'admin, ops@a.test',
      admin: 'ann@a.test',
      self: 'self, copy@a.test',
      a: 'b, good@a.test',
      b: 'a@localhost, c',
      c: 'b',
      diamond: 'root, admin',
    },
    canonical_maps: { 'ops@a.test': 'ops@b.test' },
    virtual_alias_maps: { 'good@a.test': 'better@a.test' },
    recipient_delimiter: '+',
  }
  const expanded = (address: string, more: Readonly<Record<string, unknown>> = {}) =>
    rewriting({ ...values, ...more })
      .recipients([{ address }])
      .map(({ address: to, alias }) => (alias === undefined ? to : `${alias}: ${to}`))

  test.each([
    ['root@us.test', ['ann@a.test', 'ops@b.test']],
    ['ROOT@localhost', ['ann@a.test', 'ops@b.test']],
    ['root+x@relay.test', ['ann@a.test', 'ops@b.test']],
    ['self@us.test', ['self@us.test', 'copy@a.test']],
    ['diamond@us.test', ['ann@a.test', 'ops@b.test']],
    ['root@other.test', ['root@other.test']],
    ['nobody@us.test', ['nobody@us.test']],
  ])('%s becomes %j', (address, addresses) => expect(expanded(address)).toEqual(addresses))

  test('that lead back to themselves fail, and their other addresses do not', () => {
    expect(expanded('a@localhost')).toEqual(['looping: b@us.test', 'looping: c@us.test', 'better@a.test'])
  })

  test('propagate extensions when propagate_unmatched_extensions has alias', () => {
    expect(expanded('admin+x@us.test', { propagate_unmatched_extensions: 'alias' })).toEqual(['ann+x@a.test'])
  })

  test('above virtual_alias_expansion_limit fail', () => {
    const alias_maps = { team: 'one, two', one: 'a@a.test, b@a.test', two: 'c@a.test' }
    expect(() => expanded('team@us.test', { alias_maps, virtual_alias_expansion_limit: 2 })).toThrow(ExpansionFailed)
  })
})

describe('copies', () => {
  const values = {
    sender_bcc_maps: { 's@a.test': 'by-sender' },
    recipient_bcc_maps: { '@b.test': 'by-recipient@copy.test' },
    always_bcc: 'all@copy.test',
    virtual_alias_maps: { 'all@copy.test': 'end@copy.test' },
  }
  const copies = (from: string, addresses: readonly string[], more: Readonly<Record<string, unknown>> = {}) =>
    rewriting({ ...values, ...more }).envelope({ sender: from, recipients: addresses.map((address) => ({ address })) }).recipients

  test('go to the addresses of the maps without notices, each once', () => {
    expect(copies('s@a.test', ['x@b.test', 'y@b.test'])).toEqual([
      { address: 'by-sender@us.test', notify: 'never' },
      { address: 'x@b.test' },
      { address: 'by-recipient@copy.test', notify: 'never' },
      { address: 'y@b.test' },
      { address: 'end@copy.test', notify: 'never', orcpt: 'rfc822;all@copy.test' },
    ])
  })

  test('are not made by sender for mail from <>', () => {
    expect(copies('', ['z@c.test']).map(({ address }) => address)).toEqual(['z@c.test', 'end@copy.test'])
  })

  test('to more than one address fail, and always_bcc is checked at the start', () => {
    expect(() => copies('s@a.test', ['z@c.test'], { sender_bcc_maps: { 's@a.test': 'a@b.test, c@d.test' } })).toThrow(LookupFailed)
    expect(() => configFrom({ always_bcc: 'a@b.test, c@d.test' })).toThrow('always_bcc: "a@b.test, c@d.test" is not one address')
  })
})

test('long lists are kept after they were parsed, each for its own value', () => {
  const comment = `(${'x'.repeat(10_000)})`
  const values = new Map(Array.from({ length: 101 }, (_, n) => [`list${n}@us.test`, `ann@list${n}.test ${comment}, eve@list${n}.test`]))
  const map = new AddressMap({ name: 'virtual_alias_maps', find: (key) => values.get(key) }, addressRules(configFrom({}).config), true)
  for (const n of [...Array.from(values.keys(), (_, i) => i), 0, 100])
    expect(map.all(`list${n}@us.test`)).toEqual([`ann@list${n}.test`, `eve@list${n}.test`])
})

test('without a parameter there is no rewriting', () => {
  const { config } = configFrom({}, 'relay.test')
  expect(Rewriting.of(config, openTables(config).tables)).toBeNull()
})

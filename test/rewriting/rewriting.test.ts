/** The order of lookups and of maps. test/interop/rewriting.test.ts compares them with Postfix. */
import { describe, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { LookupFailed } from '../../src/rewriting/lookup-table.ts'
import { Rewriting } from '../../src/rewriting/rewriting.ts'
import { openTables } from '../../src/rewriting/tables.ts'

function rewriting(values: Readonly<Record<string, unknown>>): Rewriting {
  const { config } = configFrom({ myorigin: 'us.test', ...values }, 'relay.test')
  const made = Rewriting.of(config, openTables(config).tables)
  if (made === null) throw new Error('no map is set')
  return made
}

const sender = (address: string, values: Readonly<Record<string, unknown>>) =>
  rewriting(values).envelope({ sender: address, recipients: [] }).sender

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

test('without a parameter there is no rewriting', () => {
  const { config } = configFrom({}, 'relay.test')
  expect(Rewriting.of(config, openTables(config).tables)).toBeNull()
})

import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Networks, peerAddress } from '../../../src/config/values/networks.ts'

describe('networks', () => {
  test.each([
    ['127.0.0.0/8', '127.255.0.1', '128.0.0.1'],
    ['192.0.2.7', '192.0.2.7', '192.0.2.8'],
    ['[::1]/128', '::1', '::2'],
    ['[2001:db8::]/32', '2001:db8:ffff::1', '2001:db9::1'],
    ['[2001:db8::1]', '2001:db8::1', '2001:db8::2'],
    ['0.0.0.0/0', '8.8.8.8', '::8'],
  ])('%s has %s and not %s', (entry, inside, outside) => {
    const networks = new Networks(['198.51.100.1', entry], 'mynetworks')
    expect([networks.has(inside), networks.has(outside)]).toEqual([true, false])
  })

  test('text that is not an address is in no network', () => {
    expect(new Networks(['0.0.0.0/0'], 'mynetworks').has('localhost')).toBe(false)
  })

  test.each(['here', '127.0.0.1/33', '[::1]/129', '1.2.3/8', '[127.0.0.1', '10.0.0.0/8x'])('%s is refused', (entry) => {
    expect(() => new Networks([entry], 'mynetworks')).toThrow(
      `mynetworks: expected a network such as 192.0.2.0/24 or [2001:db8::]/32, got ${entry}`,
    )
  })
})

test.each([
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:192.0.2.1', '192.0.2.1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['2001:db8::1', '2001:db8::1'],
  ['192.0.2.1', '192.0.2.1'],
])('the peer %s is %s', (address, peer) => expect(peerAddress(address)).toBe(peer))

const has = (entries: readonly string[], address: string) => new Networks(entries, 'mynetworks').has(address)

test('the first entry that matches decides', () => {
  const entries = ['!192.0.2.7', '192.0.2.0/24', '!2001:db8::1', '[2001:db8::]/32']
  expect([has(entries, '192.0.2.7'), has(entries, '192.0.2.8'), has(entries, '198.51.100.1')]).toEqual([false, true, false])
  expect([has(entries, '2001:db8::1'), has(entries, '2001:db8::2')]).toEqual([false, true])
  expect(has(['192.0.2.0/24', '!192.0.2.7'], '192.0.2.7')).toBe(true)
})

test('files have entries of the list, and cidr: tables one network in each line', () => {
  const list = join(tmpdir(), 'networks')
  const table = join(tmpdir(), 'networks.cidr')
  writeFileSync(list, '# offices\n192.0.2.0/24, 198.51.100.0/24\n!203.0.113.1\n')
  writeFileSync(table, '# offices\n192.0.2.0/24  OK\n2001:db8::/32 OK\n')
  expect(has([list], '198.51.100.9')).toBe(true)
  expect(has([list, '203.0.113.0/24'], '203.0.113.1')).toBe(false)
  expect(has([`cidr:${table}`], '192.0.2.9')).toBe(true)
  expect(has([`cidr:${table}`], '2001:db8::9')).toBe(true)
  expect(has([`!cidr:${table}`, '192.0.0.0/16'], '192.0.2.9')).toBe(false)
  expect(() => new Networks(['cidr:/nonexistent'], 'mynetworks')).toThrow('mynetworks: cannot read /nonexistent: ')
})

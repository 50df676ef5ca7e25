/** SPF (RFC 7208): the result for an address, the limits, and what is not evaluated. */
import { describe, expect, test } from 'vitest'
import { evaluateSpf, type SpfNet } from '../../src/domain-check/spf-evaluation.ts'
import { parseSpf } from '../../src/domain-check/spf-record.ts'
import type { Lookup } from '../../src/system/net.ts'

const US = '192.0.2.25'

/** Records by name: TXT records, MX hosts after `MX`, addresses after `A` and `AAAA`; `SERVFAIL` fails every look-up. */
type Names = Readonly<Record<string, readonly string[]>>

function dns(names: Names): SpfNet {
  const at = (name: string, type: string): Lookup<string> => {
    const records = names[name] ?? []
    if (records.includes('SERVFAIL')) return { kind: 'failed', soft: true, reason: 'SERVFAIL' }
    const found =
      type === 'TXT'
        ? records.filter((one) => !/^(?:MX|A|AAAA) /.test(one))
        : records.filter((one) => one.startsWith(`${type} `)).map((one) => one.slice(type.length + 1))
    return found.length > 0 ? { kind: 'found', records: found } : { kind: 'none', nxdomain: names[name] === undefined }
  }
  return {
    lookupTxt: async (name) => at(name, 'TXT'),
    lookupAddresses: async (name, family) => at(name, family === 4 ? 'A' : 'AAAA'),
    lookupMx: async (name) => {
      const found = at(name, 'MX')
      return found.kind === 'found' ? { kind: 'found', records: found.records.map((exchange) => ({ preference: 10, exchange })) } : found
    },
  }
}

const HOSTS: Names = {
  'us.example': ['MX mx.us.example', 'A 192.0.2.80'],
  'mx.us.example': ['A 192.0.2.25', 'AAAA 2001:db8::25'],
  'esp.example': ['v=spf1 ip4:198.51.100.0/24 ip6:2001:db8:1::/48 -all'],
}

const evaluate = (record: string, address = US, more: Names = {}) =>
  evaluateSpf(address, 'd.example', dns({ ...HOSTS, 'd.example': [record], ...more }))

describe('mechanisms', () => {
  test.each([
    ['v=spf1 ip4:192.0.2.25 -all', US, 'pass', 'ip4:192.0.2.25'],
    ['v=spf1 ip4:192.0.2.0/24 -all', US, 'pass', 'ip4:192.0.2.0/24'],
    ['v=spf1 ip4:198.51.100.0/24 -all', US, 'fail', '-all'],
    ['v=spf1 ip4:198.51.100.0/24 ~all', US, 'softfail', '~all'],
    ['v=spf1 ip4:198.51.100.0/24 ?all', US, 'neutral', '?all'],
    ['v=spf1 ip4:198.51.100.0/24', US, 'neutral', null],
    ['v=spf1 ip6:2001:db8::/32 -all', '2001:db8::25', 'pass', 'ip6:2001:db8::/32'],
    ['v=spf1 ip6:2001:db8::/32 -all', US, 'fail', '-all'],
    ['v=spf1 a:mx.us.example -all', US, 'pass', 'a:mx.us.example'],
    ['v=spf1 a:mx.us.example -all', '2001:db8::25', 'pass', 'a:mx.us.example'],
    ['v=spf1 a:us.example/26 -all', '192.0.2.70', 'pass', 'a:us.example/26'],
    ['v=spf1 a:us.example -all', US, 'fail', '-all'],
    ['v=spf1 mx:us.example -all', US, 'pass', 'mx:us.example'],
    ['v=spf1 mx:us.example//64 -all', '2001:db8::99', 'pass', 'mx:us.example//64'],
    ['v=spf1 include:esp.example -all', '198.51.100.7', 'pass', 'include:esp.example'],
    ['v=spf1 include:esp.example ~all', US, 'softfail', '~all'],
    ['v=spf1 redirect=esp.example', US, 'fail', '-all'],
    ['v=spf1 -ip4:192.0.2.25 +all', US, 'fail', '-ip4:192.0.2.25'],
    ['V=SPF1 IP4:192.0.2.25  -ALL', US, 'pass', 'IP4:192.0.2.25'],
    ['v=spf1 exp=why.example unknown=%{i} -all', US, 'fail', '-all'],
  ])('%s from %s: %s', async (record, address, result, why) => {
    expect(await evaluate(record, address)).toMatchObject({ result, why })
  })

  test.each([
    'v=spf1 exists:%{i}.d.example -all',
    'v=spf1 ptr -all',
    'v=spf1 include:%{d}.example -all',
    'v=spf1 a:%{d2} -all',
    'v=spf1 redirect=%{d}',
  ])('%s is not evaluated', async (record) => {
    expect((await evaluate(record)).result).toBe('not-evaluated')
  })

  test('what is not evaluated does not matter after a match', async () => {
    expect(await evaluate('v=spf1 ip4:192.0.2.25 exists:%{i}.d.example -all')).toMatchObject({ result: 'pass' })
  })
})

describe('errors', () => {
  test.each([
    ['a term that is unknown', 'v=spf1 ipv4:192.0.2.25 -all', {}],
    ['an address of the other family', 'v=spf1 ip4:2001:db8::1 -all', {}],
    ['a prefix that is too long', 'v=spf1 ip4:192.0.2.0/33 -all', {}],
    ['an include without a record', 'v=spf1 include:us.example -all', {}],
    ['a redirect without a record', 'v=spf1 redirect=us.example', {}],
    ['two redirects', 'v=spf1 redirect=esp.example redirect=esp.example', {}],
    ['two records', 'v=spf1 -all', { 'd.example': ['v=spf1 -all', 'v=spf1 +all'] }],
    ['three look-ups without a record', 'v=spf1 a:x.example a:y.example a:z.example +all', {}],
    ['a loop', 'v=spf1 include:d.example -all', {}],
  ])('%s', async (_, record, more) => {
    expect((await evaluate(record, US, more)).result).toBe('permerror')
  })

  test('ten look-ups are evaluated, eleven are not', async () => {
    const includes = (count: number) => Array.from({ length: count }, (_, i) => `include:i${i}.example`).join(' ')
    const more = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`i${i}.example`, ['v=spf1 ip4:203.0.113.1 -all']]))
    expect(await evaluate(`v=spf1 ${includes(10)} +all`, US, more)).toEqual({ result: 'pass', why: '+all', lookups: 10 })
    expect(await evaluate(`v=spf1 ${includes(11)} +all`, US, more)).toMatchObject({ result: 'permerror', lookups: 10 })
  })

  test('a failed look-up is temporary', async () => {
    for (const record of ['v=spf1 include:down.example -all', 'v=spf1 a:down.example -all', 'v=spf1 mx:down.example -all'])
      expect((await evaluate(record, US, { 'down.example': ['SERVFAIL'] })).result).toBe('temperror')
    expect((await evaluateSpf(US, 'down.example', dns({ 'down.example': ['SERVFAIL'] }))).result).toBe('temperror')
  })

  test('other TXT records are none', async () => {
    expect(await evaluateSpf(US, 'd.example', dns({ 'd.example': ['v=spf10 -all', 'hello'] }))).toEqual({
      result: 'none',
      why: null,
      lookups: 0,
    })
  })
})

test('a record is parsed as a whole, so that a mistake behind a match counts', async () => {
  expect(parseSpf('v=spf1 ip4:192.0.2.25 bogus -all')).toEqual({ why: '"bogus" is not valid' })
  expect((await evaluate('v=spf1 ip4:192.0.2.25 bogus -all')).result).toBe('permerror')
})

/** Records of DMARC and TLS-RPT, and our addresses as receivers see them. */
import { describe, expect, test } from 'vitest'
import { dmarcDomains, dmarcRecord } from '../../src/domain-check/dmarc-record.ts'
import { senderFindings } from '../../src/domain-check/sender-findings.ts'
import type { DomainFacts } from '../../src/domain-check/domain-facts.ts'
import { gatherSender, type SenderFacts } from '../../src/domain-check/sender-facts.ts'
import { publicSources, type OurFacts } from '../../src/domain-check/source-facts.ts'
import { tlsrptRecord } from '../../src/delivery/tls/tlsrpt-record.ts'
import { MemoryNet } from '../../src/testkit/virtual/memory-net.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

describe('DMARC', () => {
  test('the domain of From is asked first, then its parents; of a long name the last seven labels are walked', () => {
    expect(dmarcDomains('a.b.example')).toEqual(['a.b.example', 'b.example', 'example'])
    expect(dmarcDomains('l1.l2.l3.l4.l5.l6.l7')).toHaveLength(7)
    expect(dmarcDomains('l1.l2.l3.l4.l5.l6.l7.l8').slice(0, 2)).toEqual(['l1.l2.l3.l4.l5.l6.l7.l8', 'l2.l3.l4.l5.l6.l7.l8'])
    // The example of RFC 9989 §4.10.
    expect(dmarcDomains('a.b.c.d.e.f.g.h.i.j.mail.example.com')).toEqual([
      'a.b.c.d.e.f.g.h.i.j.mail.example.com',
      'g.h.i.j.mail.example.com',
      'h.i.j.mail.example.com',
      'i.j.mail.example.com',
      'j.mail.example.com',
      'mail.example.com',
      'example.com',
      'com',
    ])
  })

  test.each<[string, Readonly<Record<string, string>>, string | undefined]>([
    ['the domain of From', { 'a.b.us.example': 'p=none', 'us.example': 'p=reject' }, 'a.b.us.example none'],
    ['the organizational domain, above a parent', { 'b.us.example': 'p=none', 'us.example': 'p=none; sp=reject' }, 'us.example reject'],
    [
      'a parent that is an organizational domain (psd=n)',
      { 'b.us.example': 'p=reject; psd=n', 'us.example': 'p=none' },
      'b.us.example reject',
    ],
    ['the domain below a public suffix (psd=y)', { 'us.example': 'p=reject', example: 'p=none; psd=y' }, 'us.example reject'],
    ['a public suffix alone', { example: 'p=reject; psd=y' }, 'example reject'],
    ['no record', {}, undefined],
    ['none beside a record of the domain itself that cannot be used', { 'a.b.us.example': 'p=bogus', 'us.example': 'p=reject' }, undefined],
    ['another parent than one whose record cannot be used', { 'b.us.example': 'p=bogus', 'us.example': 'p=reject' }, 'us.example reject'],
  ])('the policy is that of %s', async (_, records, expected) => {
    const net = new MemoryNet(new VirtualClock(), {
      lookupMx: () => ({ kind: 'none', nxdomain: true }),
      lookupAddresses: () => ({ kind: 'none', nxdomain: true }),
      lookupTxt: (name) => {
        const text = records[name.replace('_dmarc.', '')]
        return text === undefined ? { kind: 'none', nxdomain: true } : { kind: 'found', records: [`v=DMARC1; ${text}`] }
      },
      dial: () => ({ kind: 'silent' }),
    })
    const { dmarc } = await gatherSender({ domain: 'a.b.us.example', addresses: [], keys: new Map() }, net)
    expect(dmarc.kind === 'found' ? `${dmarc.policy.domain} ${dmarc.policy.policy}` : undefined).toBe(expected)
  })

  test.each([
    ['us.example', ['v=DMARC1; p=reject'], { policy: 'reject', strictDkim: false }],
    ['sub.us.example', ['v=DMARC1; p=reject; sp=quarantine; adkim=s'], { policy: 'quarantine', strictDkim: true }],
    ['us.example', ['v=DMARC1; p=monitor; rua=mailto:d@us.example'], { policy: 'none', mistake: 'p=monitor is no policy' }],
    ['us.example', ['v=DMARC1; p=reject; sp=monitor; rua=mailto:d@us.example'], { policy: 'none', mistake: 'sp=monitor is no policy' }],
    ['us.example', ['v=DMARC1; rua=mailto:d@us.example'], { policy: 'none', mistake: 'p= is missing' }],
  ])('%s %j', (from, records, policy) => {
    expect(dmarcRecord(from, 'us.example', records)).toMatchObject({ kind: 'found', policy: { domain: 'us.example', ...policy } })
  })

  const NO_REPORTS = 'and there is no address for reports (rua=), so that DMARC does not apply'
  test.each([
    [['v=DMARC1; p=none', 'v=DMARC1; p=reject'], 'there are 2 records, which count as none'],
    [['v=DMARC1;p=bogus'], `p=bogus is no policy, ${NO_REPORTS}`],
    [['v=DMARC1;p=bogus;rua=d@us.example'], `p=bogus is no policy, ${NO_REPORTS}`],
    [['v=DMARC1'], `p= is missing, ${NO_REPORTS}`],
    [['v=DMARC1; p=none; p=reject'], 'it is no list of different tags'],
  ])('%j cannot be used', (records, why) => {
    expect(dmarcRecord('us.example', 'us.example', records)).toEqual({ kind: 'invalid', why })
  })

  test('a record of another version is none', () => {
    expect(dmarcRecord('us.example', 'us.example', ['v=DMARC2; p=none'])).toEqual({ kind: 'none' })
  })
})

test.each([
  [['v=TLSRPTv1; rua=mailto:tls@far.example'], { kind: 'found', rua: ['mailto:tls@far.example'] }],
  [['v=TLSRPTv1;rua= mailto:a@b.example , https://c.example/x'], { kind: 'found', rua: ['mailto:a@b.example', 'https://c.example/x'] }],
  [['v=TLSRPTv1; ext=1; rua=ftp://x.example,mailto:a@b.example'], { kind: 'found', rua: ['mailto:a@b.example'] }],
  [
    ['v=TLSRPTv1; rua=mailto:a@b.example?subject=TLS%20report&cc=c@b.example'],
    { kind: 'found', rua: ['mailto:a@b.example?subject=TLS%20report&cc=c@b.example'] },
  ],
  [['v=TLSRPTv1; rua=mailto:a@b.example,mailto:a@b.example'], { kind: 'found', rua: ['mailto:a@b.example'] }],
  [['v=TLSRPTv1; rua=mailto:a@b.example?subject=a!b'], { kind: 'invalid' }],
  [['v=TLSRPTv1; rua=http://x.example'], { kind: 'invalid' }],
  [['v=TLSRPTv1; rua=mailto:a@b.example', 'v=TLSRPTv1; rua=mailto:c@b.example'], { kind: 'invalid' }],
  [['v=TLSRPTv2; rua=mailto:a@b.example', 'v=TLSRPTv1'], { kind: 'none' }],
])('TLS-RPT %j', (records, expected) => {
  expect(tlsrptRecord({ kind: 'found', records })).toMatchObject(expected)
})

test('addresses behind a translation are those of proxy_interfaces', () => {
  expect(publicSources(['10.0.0.5'], ['192.0.2.1', '10.9.9.9', '2001:db8::1'])).toEqual({ sources: ['192.0.2.1'], hidden: [] })
  expect(publicSources(['10.0.0.5', 'fd00::5', '::ffff:192.0.2.7'], [])).toEqual({
    sources: ['192.0.2.7'],
    hidden: ['10.0.0.5', 'fd00::5'],
  })
})

describe('findings about the sender', () => {
  const US: OurFacts = {
    helo: 'relay.us.example',
    heloAddresses: { kind: 'found', records: ['192.0.2.1'] },
    sources: [
      { address: '192.0.2.1', names: { kind: 'found', records: ['relay.us.example'] }, confirmed: ['relay.us.example'], unknown: [] },
    ],
    hidden: [],
  }
  const SENDER: SenderFacts = { domain: 'us.example', spf: [], dkim: [], dmarc: { kind: 'none' } }
  const DIRECT = { hops: [], route: { transport: 'smtp', nexthops: [{ origin: 'recipient', host: 'far.example', port: 25, mx: true }] } }

  const findings = (us: Partial<OurFacts>, sender: Partial<SenderFacts> = {}, delivery: object = DIRECT) =>
    senderFindings({ delivery, us: { ...US, ...us }, sender: { ...SENDER, ...sender } } as unknown as DomainFacts)

  const [source] = US.sources
  const verdictOf = (what: string, ...args: Parameters<typeof findings>) =>
    findings(...args).find((finding) => finding.what === what)?.verdict

  test.each<[string, Partial<OurFacts>, string]>([
    ['a name with this address', {}, 'ok'],
    [
      'no name',
      { sources: [{ ...source, address: '192.0.2.1', names: { kind: 'none', nxdomain: true }, confirmed: [], unknown: [] }] },
      'wrong',
    ],
    ['a name with another address', { sources: source === undefined ? [] : [{ ...source, confirmed: [] }] }, 'wrong'],
    [
      'a name that cannot be looked up',
      { sources: source === undefined ? [] : [{ ...source, confirmed: [], unknown: ['x.example'] }] },
      'unknown',
    ],
    ['no connection', { sources: [] }, 'note'],
  ])('source: %s', (_, us, verdict) => {
    expect(verdictOf('source', us)).toBe(verdict)
  })

  test.each<[OurFacts['heloAddresses'], string]>([
    [{ kind: 'found', records: ['192.0.2.1'] }, 'ok'],
    [{ kind: 'found', records: ['192.0.2.9'] }, 'note'],
    [{ kind: 'none', nxdomain: true }, 'wrong'],
    [{ kind: 'failed', soft: true, reason: 'SERVFAIL' }, 'unknown'],
  ])('HELO: %j', (heloAddresses, verdict) => {
    expect(verdictOf('HELO', { heloAddresses })).toBe(verdict)
  })

  const spf = (result: SenderFacts['spf'][number]['result']) => [{ address: '192.0.2.1', result, why: null, lookups: 0 }]
  const dkim = (verdict: SenderFacts['dkim'][number]['verdict'], domain = 'us.example', signs = true) => [
    { domain, selector: 's', signs, verdict, text: 's._domainkey' },
  ]
  const dmarc = (policy: 'none' | 'quarantine' | 'reject', strictDkim = false): SenderFacts['dmarc'] => ({
    kind: 'found',
    policy: { domain: 'us.example', policy, strictDkim },
  })

  test.each<[string, Partial<SenderFacts>, string]>([
    ['SPF passes', { spf: spf('pass'), dmarc: dmarc('reject') }, 'ok'],
    ['DKIM passes', { spf: spf('fail'), dkim: dkim('ok'), dmarc: dmarc('reject') }, 'ok'],
    ['DKIM of a parent passes', { domain: 'a.us.example', spf: spf('fail'), dkim: dkim('ok'), dmarc: dmarc('reject') }, 'ok'],
    ['DKIM of a parent, strictly', { domain: 'a.us.example', spf: spf('fail'), dkim: dkim('ok'), dmarc: dmarc('reject', true) }, 'wrong'],
    ['a key that does not sign yet', { spf: spf('fail'), dkim: dkim('ok', 'us.example', false), dmarc: dmarc('reject') }, 'wrong'],
    ['neither passes', { spf: spf('softfail'), dkim: dkim('wrong'), dmarc: dmarc('quarantine') }, 'wrong'],
    ['neither passes, p=none', { spf: spf('fail'), dmarc: dmarc('none') }, 'note'],
    ['not known', { spf: spf('not-evaluated'), dmarc: dmarc('reject') }, 'note'],
    ['no record', { spf: spf('pass') }, 'note'],
    ['a failed look-up', { dmarc: { kind: 'failed', why: 'SERVFAIL' } }, 'unknown'],
    ['a record that cannot be used', { spf: spf('pass'), dmarc: { kind: 'invalid', why: 'there are 2 records' } }, 'wrong'],
  ])('DMARC: %s', (_, sender, verdict) => {
    expect(verdictOf('DMARC', {}, sender)).toBe(verdict)
  })

  test('mail by a relayhost is judged without our addresses', () => {
    const delivery = {
      hops: [],
      route: { transport: 'smtp', nexthops: [{ origin: 'relayhost', host: 'r.example', port: 587, mx: false }] },
    }
    const found = findings({}, { spf: spf('fail'), dmarc: dmarc('reject') }, delivery)
    expect(found.map(({ what, verdict }) => `${what} ${verdict}`)).toEqual(['source note', 'DKIM note', 'DMARC note'])
  })
})

import { describe, expect, test } from 'vitest'
import type { NextHop } from '../../../src/config/values/next-hop.ts'
import type { TlsLevel } from '../../../src/mail/tls-levels.ts'
import { NO_TLS, TlsPolicies } from '../../../src/delivery/tls/tls-policy.ts'

const hop = (host: string, { port = 25, mx = true } = {}): NextHop => ({ host, port, mx, origin: 'recipient' })
const policies = (...lines: readonly string[]) => new TlsPolicies({ smtp_tls_policy_maps: lines }, { ca: 'CA', cert: 'CERT' })

const levelFor = (found: TlsPolicies, nextHop: NextHop, level: TlsLevel) =>
  found.termsFor(nextHop, nextHop.host, { level, wrapper: false }).level

describe('the policy for a next hop', () => {
  const found = policies('far.example encrypt', '.far.example verify', '[hub.example]:587 none', '[hub.example] secure', '* may')

  test.each([
    ['the domain', hop('far.example'), 'encrypt'],
    ['a parent domain', hop('mail.far.example'), 'verify'],
    ['host and port', hop('hub.example', { port: 587, mx: false }), 'none'],
    ['the host at another port', hop('hub.example', { mx: false }), 'secure'],
    ['any other', hop('else.example'), 'may'],
  ] as const)('by %s', (_, nextHop, level) => expect(levelFor(found, nextHop, 'none')).toBe(level))

  test('is the default level without a match', () => {
    expect(levelFor(policies(), hop('far.example'), 'encrypt')).toBe('encrypt')
  })
})

describe('the terms', () => {
  test.each([
    ['may', { required: false, options: { rejectUnauthorized: false } }],
    ['encrypt', { required: true, options: { rejectUnauthorized: false } }],
    ['verify', { required: true, options: { rejectUnauthorized: true } }],
    ['secure', { required: true, options: { rejectUnauthorized: true } }],
  ] as const)('of level %s', (level, terms) => {
    expect(policies().termsFor(hop('far.example'), 'mx.far.example', { level, wrapper: false })).toMatchObject({ level, ...terms })
  })

  test('of level none use no TLS', () => {
    expect(policies().termsFor(hop('far.example'), 'mx.far.example', { level: 'none', wrapper: false })).toBe(NO_TLS)
  })

  test('have the configured files; the certificate file may hold the key', () => {
    const { options } = policies().termsFor(hop('far.example'), 'mx.far.example', { level: 'may', wrapper: false })
    expect(options).toMatchObject({ ca: 'CA', cert: 'CERT', key: 'CERT' })
  })

  test.each([
    ['verify', 'mx.far.example', true],
    ['verify', 'far.example', false],
    ['secure', 'far.example', true],
    ['secure', 'mail.far.example', true],
    ['secure', 'notfar.example', false],
  ] as const)('of level %s: a certificate for %s is accepted: %s', (level, name, accepted) => {
    const { options } = policies().termsFor(hop('far.example'), 'mx.far.example', { level, wrapper: false })
    const certificate = { subject: { CN: '' }, subjectaltname: `DNS:${name}` } as unknown as Parameters<
      NonNullable<typeof options.checkServerIdentity>
    >[1]
    expect(options.checkServerIdentity?.('ignored', certificate) === undefined).toBe(accepted)
  })
})

test('terms with equal demands have equal digests, and others do not', () => {
  const settings = { level: 'secure', wrapper: false } as const
  const digest = (found: TlsPolicies, at = settings) => found.termsFor(hop('far.example'), 'mx.far.example', at).digest
  expect(digest(policies())).toBe(policies().digestFor(hop('far.example'), settings))
  const others = [
    digest(policies('far.example secure match=other.example')),
    digest(policies('far.example verify')),
    digest(new TlsPolicies({ smtp_tls_policy_maps: [] }, { ca: 'another CA' })),
    digest(policies(), { ...settings, wrapper: true } as unknown as typeof settings),
  ]
  expect(new Set([digest(policies()), ...others]).size).toBe(5)
})

test.each(['far.example', 'far.example sometimes'])('the malformed policy %j is refused', (line) => {
  expect(() => policies(line)).toThrow(/smtp_tls_policy_maps/)
})

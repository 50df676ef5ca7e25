import { expect, test } from 'vitest'
import { sameTls, tlsFeature, type TlsFacts } from '../../src/mail/tls-facts.ts'

/** Rows of postconf(5), smtp_log_tls_feature_status (Postfix 3.11), and of pol_stats(3). */
test.each([
  ['none', 'clear', 'none'],
  ['may', 'encrypted', 'may'],
  ['may', 'trusted', 'may'],
  ['may', 'undecided', 'may?'],
  ['may', 'clear', 'may:none'],
  ['encrypt', 'encrypted', 'encrypt'],
  ['encrypt', 'not-offered', '!encrypt:none'],
  ['secure', 'verified', 'secure'],
  ['dane', 'verified', 'dane'],
  ['dane', 'trusted', 'dane:halfdane'],
  ['dane', 'encrypted', 'dane:encrypt'],
  ['dane', 'undecided', 'dane?'],
  ['dane', 'refused', '!dane'],
  ['secure', 'refused', '!secure'],
  ['verify', 'undecided', 'verify?'],
] as const)('level %s, %s: tls=%s', (level, state, expected) => {
  expect(tlsFeature({ level, state, policy: 'config' })).toBe(expected)
})

test('facts are equal when all their members are', () => {
  const facts: TlsFacts = { level: 'may', policy: 'none', state: 'encrypted', protocol: 'TLSv1.3', cipher: 'X' }
  expect(sameTls(facts, { ...facts })).toBe(true)
  expect(sameTls(facts, undefined)).toBe(false)
  expect(sameTls(undefined, undefined)).toBe(true)
  for (const other of [
    { level: 'none' },
    { policy: 'sts' },
    { state: 'trusted' },
    { protocol: 'TLSv1.2' },
    { cipher: 'Y' },
    { reason: 'Z' },
  ])
    expect(sameTls(facts, { ...facts, ...other } as TlsFacts)).toBe(false)
})

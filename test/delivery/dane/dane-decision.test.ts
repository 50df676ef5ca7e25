/** The decision table of DANE, row by row (Postfix smtp_tls_policy.c, RFC 7672 §2.2). */
import { describe, expect, test } from 'vitest'
import { decideDane, tlsaAnswer, tlsaQuestion, type DaneFacts, type TlsaAnswer } from '../../../src/delivery/dane/dane-decision.ts'
import type { TlsaRecord } from '../../../src/system/net.ts'

const usable: TlsaRecord = { usage: 3, selector: 1, matchingType: 1, data: new Uint8Array(32) }
const unusable: TlsaRecord = { ...usable, usage: 1 }
const records = (...list: readonly TlsaRecord[]): TlsaAnswer => ({ kind: 'found', base: 'mx.far.example', records: list })
const facts: DaneFacts = {
  level: 'dane',
  host: 'mx.far.example',
  port: 25,
  dns: { mxSecure: true },
  insecureMx: 'dane',
  digests: ['sha512', 'sha256'],
  tlsa: records(usable),
}
const verify = { kind: 'verify', base: 'mx.far.example', records: [usable], half: false }
const refused = (reason: string) => ({
  kind: 'refused',
  reason,
  fault: reason.startsWith('TLSA lookup') ? 'lookup' : reason.endsWith('unusable') ? 'unusable' : 'required',
})

describe('names of TLSA records', () => {
  test.each([
    ['addresses are authentic', { secure: true, canonical: 'mx.far.example' }, { kind: 'names', names: ['mx.far.example'] }],
    ['addresses are not authentic', { secure: false, canonical: 'mx.far.example' }, { kind: 'none' }],
    [
      'an alias, all authentic',
      { secure: true, canonical: 'real.far.example' },
      { kind: 'names', names: ['real.far.example', 'mx.far.example'] },
    ],
    ['an alias, its target is not authentic', { secure: false, canonical: 'real.far.example' }, { kind: 'alias' }],
  ])('%s', (_, dns, expected) => expect(tlsaQuestion('mx.far.example', { mxSecure: true, ...dns })).toEqual(expected))
})

describe('an answer', () => {
  test.each([
    ['with authentic records', { kind: 'found', records: [usable], secure: true, name: 'x' }, records(usable)],
    ['with records that are not authentic is none', { kind: 'found', records: [usable], secure: false, name: 'x' }, { kind: 'none' }],
    ['without records is none', { kind: 'none', nxdomain: false, secure: true }, { kind: 'none' }],
    ['of a name that does not exist is none', { kind: 'none', nxdomain: true, secure: false }, { kind: 'none' }],
    ['SERVFAIL is a failure', { kind: 'failed', soft: true, reason: 'SERVFAIL' }, { kind: 'failed' }],
    ['REFUSED is a failure', { kind: 'failed', soft: true, reason: 'REFUSED' }, { kind: 'failed' }],
    ['timeout is a failure', { kind: 'failed', soft: true, reason: 'timeout' }, { kind: 'failed' }],
  ] as const)('%s', (_, answer, expected) => expect(tlsaAnswer('mx.far.example', answer)).toEqual(expected))
})

describe('rows', () => {
  test.each<[string, Partial<DaneFacts>, object, object]>([
    ['usable records', {}, verify, verify],
    [
      'records, none usable',
      { tlsa: records(unusable) },
      { kind: 'encrypt', base: 'mx.far.example', records: [unusable] },
      refused('TLSA records unusable'),
    ],
    ['no records', { tlsa: { kind: 'none' } }, { kind: 'inapplicable' }, refused('no TLSA records found')],
    [
      'the look-up failed',
      { tlsa: { kind: 'failed' } },
      refused('TLSA lookup error for mx.far.example:25'),
      refused('TLSA lookup error for mx.far.example:25'),
    ],
    ['insecure MX, policy dane', { dns: { mxSecure: false } }, { ...verify, half: true }, refused('non DNSSEC destination')],
    [
      'insecure MX, policy encrypt',
      { dns: { mxSecure: false }, insecureMx: 'encrypt' },
      { kind: 'encrypt' },
      refused('non DNSSEC destination'),
    ],
    [
      'insecure MX, policy may',
      { dns: { mxSecure: false }, insecureMx: 'may' },
      { kind: 'inapplicable' },
      refused('non DNSSEC destination'),
    ],
    [
      'insecure MX, and the look-up failed',
      { dns: { mxSecure: false }, tlsa: { kind: 'failed' } },
      refused('TLSA lookup error for mx.far.example:25'),
      refused('non DNSSEC destination'),
    ],
    [
      'insecure MX, no records',
      { dns: { mxSecure: false }, tlsa: { kind: 'none' } },
      { kind: 'inapplicable' },
      refused('non DNSSEC destination'),
    ],
  ])('%s', (_, changed, dane, daneOnly) => {
    expect(decideDane({ ...facts, ...changed })).toMatchObject(dane)
    expect(decideDane({ ...facts, ...changed, level: 'dane-only' })).toMatchObject(daneOnly)
  })
})

import { createHash, X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anchorsAmong, matches, matchesHost, usableRecords } from '../../../src/delivery/dane/tlsa.ts'
import type { TlsaRecord } from '../../../src/system/net.ts'
import { makeCertificate } from '../../../src/testkit/remote/certificate-maker.ts'

const authority = makeCertificate({ seed: 'CA', isAuthority: true })
const host = makeCertificate({ seed: 'host', names: ['mx.far.example'], issuer: authority })
const [leaf, issuer] = [new X509Certificate(host.cert), new X509Certificate(authority.cert)]
const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest()
const sha512 = (data: Uint8Array) => createHash('sha512').update(data).digest()
const record = (usage: number, selector: number, matchingType: number, data: Uint8Array): TlsaRecord => ({
  usage,
  selector,
  matchingType,
  data,
})
const BOTH = ['sha512', 'sha256'] as const

describe('usable records', () => {
  const digest = sha256(host.spki)
  test.each<[string, TlsaRecord, boolean]>([
    ['3 1 1', record(3, 1, 1, digest), true],
    ['3 0 2', record(3, 0, 2, sha512(host.der)), true],
    ['2 0 0', record(2, 0, 0, authority.der), true],
    ['1 1 1, of usage 1', record(1, 1, 1, digest), false],
    ['0 0 1, of usage 0', record(0, 0, 1, digest), false],
    ['3 2 1, of an unknown selector', record(3, 2, 1, digest), false],
    ['3 1 3, of an unknown digest', record(3, 1, 3, digest), false],
    ['3 1 1 with a short digest', record(3, 1, 1, digest.subarray(1)), false],
    ['3 1 2 with the digest of 3 1 1', record(3, 1, 2, digest), false],
    ['3 1 0 without data', record(3, 1, 0, Buffer.alloc(0)), false],
  ])('%s: %s', (_, one, expected) => expect(usableRecords([one], BOTH)).toEqual(expected ? [one] : []))

  test('only the strongest digest of a usage and selector counts', () => {
    const [weak, strong, other] = [record(3, 1, 1, digest), record(3, 1, 2, sha512(host.spki)), record(2, 1, 1, digest)]
    expect(usableRecords([weak, strong, other], BOTH)).toEqual([strong, other])
    expect(usableRecords([weak, strong], ['sha256', 'sha512'])).toEqual([weak])
    expect(usableRecords([weak, strong], ['sha256'])).toEqual([weak])
  })

  test('of any records are some of them', () => {
    const any = fc.record({
      usage: fc.integer({ min: 0, max: 255 }),
      selector: fc.nat(3),
      matchingType: fc.nat(3),
      data: fc.uint8Array({ maxLength: 65 }),
    })
    fc.assert(
      fc.property(fc.array(any), (records) => {
        for (const one of usableRecords(records, BOTH)) {
          expect(records).toContain(one)
          expect([2, 3]).toContain(one.usage)
          expect(matches(one, leaf)).toBe(false)
        }
      }),
    )
  })
})

test.each<[string, TlsaRecord, boolean, boolean]>([
  ['3 1 1 of the key', record(3, 1, 1, sha256(host.spki)), true, false],
  ['3 0 1 of the certificate', record(3, 0, 1, sha256(host.der)), true, false],
  ['3 1 2 of the key', record(3, 1, 2, sha512(host.spki)), true, false],
  ['3 0 0, the certificate', record(3, 0, 0, host.der), true, false],
  ['3 1 1 of another key', record(3, 1, 1, sha256(authority.spki)), false, false],
  ['2 1 1 of the issuer', record(2, 1, 1, sha256(authority.spki)), false, true],
  ['2 0 1 of the issuer', record(2, 0, 1, sha256(authority.der)), false, true],
  ['2 1 1 of the host itself', record(2, 1, 1, sha256(host.spki)), false, false],
])('%s: host %s, issuer %s', (_, one, ofHost, ofIssuer) => {
  expect(matchesHost([one], leaf)).toBe(ofHost)
  expect(anchorsAmong([one], [issuer])).toEqual(ofIssuer ? [issuer] : [])
})

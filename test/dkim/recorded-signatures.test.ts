/**
 * Recorded signatures: ours, which opendkim 2.11 and dkimpy 1.1 accepted, and those of dkimpy in all canonicalizations. The tests
 * of test/interop ask the programs themselves.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { recordText } from '../../src/dkim/key-record.ts'
import { readSignatures, signatureProblem } from '../../src/dkim/verifier.ts'
import { createPublicKey } from 'node:crypto'
import { KEY_FILES } from '../support/dkim/dkim-keys.ts'
import { delivered } from '../support/dkim/signed-mail.ts'

/** Texts with one character per octet. */
interface Vectors {
  /** Messages as clients send them, and as they were sent on. */
  readonly ours: readonly { readonly raw: string; readonly sent: string }[]
  /** Signed messages, alternately with RSA and Ed25519. */
  readonly dkimpy: readonly string[]
}

const { ours, dkimpy } = JSON.parse(readFileSync(new URL('vectors.json', import.meta.url), 'utf8')) as Vectors
const record = (path: string): string => recordText(createPublicKey(readFileSync(path, 'utf8')))
const RECORDS: Readonly<Record<string, string>> = { r1: record(KEY_FILES.rsa), e1: record(KEY_FILES.ed25519) }
const NOW = 1_795_367_854

function problems(text: string, records = RECORDS): readonly (string | null)[] {
  const content = readSignatures(Buffer.from(text, 'latin1'))
  return content.signatures.map((one) => signatureProblem(content, one, [records[one.selector] ?? ''], NOW))
}

const signaturesIn = (text: string): string => /^(?:DKIM-Signature:.*\r\n(?:[ \t].*\r\n)*)+/.exec(text)?.[0] ?? ''

test('the relay makes the signatures that other verifiers accepted', async () => {
  const sent = await delivered(ours.map(({ raw }) => raw))
  expect(sent.map((mail) => signaturesIn(mail.toString('latin1')))).toEqual(ours.map((one) => signaturesIn(one.sent)))
  for (const one of ours) expect(problems(one.sent)).toEqual([null, null])
})

describe('the verifier', () => {
  test('accepts the signatures of another signer, in all canonicalizations', () => {
    expect(dkimpy.map((text) => problems(text))).toEqual(dkimpy.map(() => [null]))
    expect(new Set(dkimpy.map((text) => /c=(\w+\/\w+)/.exec(text)?.[1]))).toHaveProperty('size', 4)
  })

  const [signed = ''] = dkimpy
  const [, signedWithEd25519 = ''] = dkimpy

  test.each([
    ['another body', (text: string) => text.replace('hello', 'hullo'), 'the body was changed'],
    [
      'a second Subject',
      (text: string) => text.replace('Subject: plain', 'Subject: plain\r\nSubject: act'),
      'a signed header field was changed',
    ],
    ['another bh=', (text: string) => text.replace(/bh=./, 'bh=_'), 'the body was changed'],
    ['another b=', (text: string) => text.replace(/ b=./, ' b=_'), 'a signed header field was changed'],
    ['l=', (text: string) => text.replace('v=1;', 'v=1; l=1;'), 'it covers a part of the body only (l=)'],
    ['an unknown version', (text: string) => text.replace('v=1;', 'v=2;'), 'unknown version v=2'],
    ['an old algorithm', (text: string) => text.replace('rsa-sha256', 'rsa-sha1'), 'the algorithm rsa-sha1 is not supported'],
    ['an unknown canonicalization', (text: string) => text.replace('c=relaxed/relaxed', 'c=loose'), 'unknown canonicalization c=loose'],
    ['no From in h=', (text: string) => text.replace('h=from', 'h=x'), 'From is not signed'],
    ['a missing tag', (text: string) => text.replace('d=us.example;', ''), 'the tag d= is missing'],
    ['a repeated tag', (text: string) => text.replace('v=1;', 'v=1; v=1;'), 'the tag v= is missing'],
    ['an end in the past', (text: string) => text.replace('v=1;', `v=1; x=${NOW - 1};`), 'it has expired (x=)'],
  ])('refuses a signature with %s', (_name, change, why) => {
    expect(problems(change(signed))).toEqual([why])
  })

  test.each([
    ['no record', '', 'the key is revoked (empty p=)'],
    ['a revoked key', 'v=DKIM1; p=', 'the key is revoked (empty p=)'],
    ['a key of another type', RECORDS['e1'] ?? '', 'the published key is of another type than rsa-sha256'],
    ['a key for another hash', `${RECORDS['r1']}; h=sha1`, 'its record does not allow sha256 (h=)'],
    ['a key for another service', `${RECORDS['r1']}; s=tlsrpt`, 'its record is not for mail (s=tlsrpt)'],
    ['an unknown type', 'v=DKIM1; k=gost; p=AAAA', 'its record has an unknown type of key (k=gost)'],
    ['a damaged key', 'v=DKIM1; k=rsa; p=AAAA', 'its record has a damaged key (p=)'],
    ['another record', 'v=spf1 -all', 'its record is not a DKIM1 record'],
  ])('refuses a signature whose selector has %s', (_name, text, why) => {
    expect(problems(signed, { r1: text })).toEqual([why])
  })

  test('refuses a signature without a record', () => {
    const content = readSignatures(Buffer.from(signedWithEd25519, 'latin1'))
    expect(content.signatures.map((one) => signatureProblem(content, one, [], NOW))).toEqual(['its key is not published'])
  })

  test('accepts RSA keys in their older form, and blanks in a record', () => {
    const older = createPublicKey(readFileSync(KEY_FILES.rsa, 'utf8')).export({ type: 'pkcs1', format: 'der' }).toString('base64')
    expect(problems(signed, { r1: `v = DKIM1 ; p = ${older.replaceAll(/(.{40})/g, '$1 ')}` })).toEqual([null])
  })
})

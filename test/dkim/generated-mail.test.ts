/** Generated mail through the whole relay: signatures are valid for what the remote server gets, and for nothing else. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { loadDkimKey } from '../../src/dkim/keys.ts'
import { readSignatures, signatureProblem } from '../../src/dkim/verifier.ts'
import { KEY_FILES } from '../support/dkim/dkim-keys.ts'
import { delivered, HARMLESS, MUTATIONS, rawMessage } from '../support/dkim/signed-mail.ts'

const records: Readonly<Record<string, string>> = {
  r1: loadDkimKey({ selector: 'r1', path: KEY_FILES.rsa, staged: false }).record,
  e1: loadDkimKey({ selector: 'e1', path: KEY_FILES.ed25519, staged: false }).record,
}

/** Problems of the signatures; null for a valid one. */
function problems(content: Buffer): readonly (string | null)[] {
  const signed = readSignatures(content)
  return signed.signatures.map((one) => signatureProblem(signed, one, [records[one.selector] ?? ''], 1_767_225_600))
}

const changed = (content: Buffer, change: (text: string) => string): Buffer => Buffer.from(change(content.toString('latin1')), 'latin1')

test('signatures of generated mail are valid, and invalid after a change of what they cover', async () => {
  const messages = fc.sample(rawMessage, { seed: 1, numRuns: 60 })
  for (const content of await delivered(messages)) {
    const shown = content.toString('latin1').slice(0, 3_000)
    expect(problems(content), shown).toEqual([null, null])
    for (const [name, change] of Object.entries(MUTATIONS)) {
      const found = problems(changed(content, change))
      expect(found.includes(null), `${name}\n${shown}`).toBe(false)
    }
    for (const [name, change] of Object.entries(HARMLESS)) {
      expect(problems(changed(content, change)), `${name}\n${shown}`).toEqual([null, null])
    }
  }
})

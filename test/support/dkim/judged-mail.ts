/** Generated mail through the whole relay, judged by opendkim and dkimpy. */
import fc from 'fast-check'
import { loadDkimKey } from '../../../src/dkim/keys.ts'
import { recordName } from '../../../src/dkim/key-record.ts'
import { KEY_FILES } from './dkim-keys.ts'
import { OtherVerifiers, type Verdict } from './other-verifiers.ts'
import { delivered, deliveredAgain, HARMLESS, MUTATIONS, rawMessage } from './signed-mail.ts'

const RECORDS: ReadonlyMap<string, string> = new Map(
  [
    { selector: 'r1', path: KEY_FILES.rsa, staged: false },
    { selector: 'e1', path: KEY_FILES.ed25519, staged: false },
  ].map((name) => [recordName(name.selector, 'us.example'), loadDkimKey(name).record]),
)

/** Messages per call of the programs. */
const BATCH = 100

/** Verdicts of the programs that differ from the expected ones, each with the beginning of its message; empty when all agree. */
export async function misjudged(count: number, seed: number): Promise<readonly string[]> {
  const verifiers = new OtherVerifiers(RECORDS)
  const wrong: string[] = []
  const judge = async (messages: readonly Buffer[], expected: Verdict, what: (i: number) => string): Promise<void> => {
    const { opendkim, dkimpy } = await verifiers.verdicts(messages)
    messages.forEach((content, i) => {
      const found = [opendkim[i], dkimpy[i]].map((verdict) => (verdict ?? ['missing']).join())
      if (found.every((verdict) => verdict === expected.join())) return
      wrong.push(`${what(i)}: opendkim ${found[0]}, dkimpy ${found[1]}\n${content.toString('latin1').slice(0, 2_000)}`)
    })
  }
  const raws = fc.sample(rawMessage, { seed, numRuns: count })
  const mutations = Object.entries(MUTATIONS)
  const harmless = Object.entries(HARMLESS)
  for (let from = 0; from < count; from += BATCH) {
    const mails = await delivered(raws.slice(from, from + BATCH))
    await judge(mails, BOTH, () => 'unchanged')
    const changed = mails.map((mail, i) => applied(mail, mutations[(from + i) % mutations.length]?.[1]))
    await judge(changed, [], (i) => mutations[(from + i) % mutations.length]?.[0] ?? '')
    const kept = mails.map((mail, i) => applied(mail, harmless[(from + i) % harmless.length]?.[1]))
    await judge(kept, BOTH, (i) => harmless[(from + i) % harmless.length]?.[0] ?? '')
  }
  return wrong
}

const BOTH: Verdict = ['rsa-sha256', 'ed25519-sha256']

const applied = (mail: Buffer, change: (text: string) => string = (text) => text): Buffer =>
  Buffer.from(change(mail.toString('latin1')), 'latin1')

/** Twelve megabytes of base64, which are staged in the store before they are signed. */
export const LARGE = `From: app@us.example\r\nSubject: large\r\n\r\n${`${'QUJD'.repeat(19)}\r\n`.repeat(154_000)}`

export async function judgedLarge(): Promise<{ readonly opendkim: Verdict; readonly dkimpy: Verdict }> {
  const { opendkim, dkimpy } = await new OtherVerifiers(RECORDS).verdicts(await delivered([LARGE]))
  return { opendkim: opendkim[0] ?? [], dkimpy: dkimpy[0] ?? [] }
}

/** Numbers of copies whose signatures both programs accept, and of all copies: those of three attempts with a restart in between. */
export async function judgedCopies(count: number, directory: string): Promise<{ readonly valid: number; readonly copies: number }> {
  const copies = await deliveredAgain(fc.sample(rawMessage, { seed: 3, numRuns: count }), directory)
  const { opendkim, dkimpy } = await new OtherVerifiers(RECORDS).verdicts(copies)
  const isValid = (_: Buffer, i: number): boolean => [opendkim[i], dkimpy[i]].every((verdict) => verdict?.join() === BOTH.join())
  return { valid: copies.filter(isValid).length, copies: copies.length }
}

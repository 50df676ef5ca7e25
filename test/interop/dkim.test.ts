/** Signatures of generated mail, judged by opendkim and dkimpy. test/long/dkim.long.ts has more of it. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { judgedCopies, judgedLarge, misjudged } from '../support/dkim/judged-mail.ts'
import { verifiersAreMissing } from '../support/dkim/other-verifiers.ts'
import { reasonToSkip } from '../support/required.ts'

const reason = reasonToSkip('interop', verifiersAreMissing())
const title = (text: string): string => (reason === null ? text : `${text} (not run: ${reason})`)

test.skipIf(reason !== null)(title('both accept every signature, and none after a change of what it covers'), async () => {
  expect((await misjudged(200, 7)).slice(0, 3)).toEqual([])
})

test.skipIf(reason !== null)(title('both accept the signatures of a message of 12 MB'), async () => {
  const both = ['rsa-sha256', 'ed25519-sha256']
  expect(await judgedLarge()).toEqual({ opendkim: both, dkimpy: both })
})

test.skipIf(reason !== null)(title('both accept the copies of three attempts, changed by smtp_generic_maps, after a crash'), async () => {
  expect(await judgedCopies(30, mkdtempSync(join(tmpdir(), 'deferd-copies-')))).toEqual({ valid: 90, copies: 90 })
})

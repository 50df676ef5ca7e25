/** 5,000 generated messages and their changed copies, judged by opendkim and dkimpy. */
import { expect, test } from 'vitest'
import { misjudged } from '../support/dkim/judged-mail.ts'
import { verifiersAreMissing } from '../support/dkim/other-verifiers.ts'
import { reasonToSkip } from '../support/required.ts'

const reason = reasonToSkip('interop', verifiersAreMissing())

test.skipIf(reason !== null)(`5,000 generated messages${reason === null ? '' : ` (not run: ${reason})`}`, async () => {
  expect((await misjudged(5_000, 20_261_122)).slice(0, 3)).toEqual([])
})

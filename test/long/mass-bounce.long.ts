import { expect, test } from 'vitest'
import { MassBounce } from '../support/mass-bounce.ts'

const MESSAGES = 50_000

test('50,000 messages that a rule returned to one of four recipients are sent again to it, once each, through three SIGKILLs', async () => {
  await using bounce = await MassBounce.of(MESSAGES, ['ann', 'bob', 'carl'])
  const dryRun = await bounce.resend('--dry-run', '--json')
  expect(dryRun).toMatchObject({ code: 0, err: '' })
  const { plan } = JSON.parse(dryRun.out) as { readonly plan: object }
  expect(plan).toMatchObject({ messages: bounce.messages, recipients: bounce.messages, sent_before: 0, without_content: 0 })
  await bounce.resendThroughKills()
  await bounce.rests()
  bounce.expectCopies({ ruled: 1 })
})

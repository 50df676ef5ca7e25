/**
 * A rule of the remote side returns thousands of messages by mistake. When it is repaired, `deferd history resend` sends them to the
 * recipients that it refused, once each, also when SIGKILL ends the daemon on the way.
 */
import { expect, test } from 'vitest'
import { MassBounce } from '../support/mass-bounce.ts'

test('5,000 messages that a rule returned are sent again to the refused recipients, once each, and a second time is refused', async () => {
  await using bounce = await MassBounce.of(5_000)
  const { messages } = bounce
  const { plan } = JSON.parse((await bounce.resend('--dry-run', '--json')).out) as { readonly plan: object }
  expect(plan).toMatchObject({ messages, recipients: messages, sent_before: 0, without_content: 0 })
  bounce.expectCopies({ ruled: 0 })
  const unknown = await bounce.run('history', 'resend', 'noSuchId1', 'noSuchId2', '--dry-run')
  expect(unknown).toMatchObject({
    code: 65,
    err: expect.stringContaining('no such message in the history: noSuchId1 and 1 more') as string,
  })
  expect(JSON.parse((await bounce.resend('--json')).out)).toMatchObject({
    operation: 'resend',
    state: 'done',
    changed: messages,
    error: null,
  })
  expect(JSON.parse((await bounce.run('operation', 'list', '--json')).out)).toMatchObject({ operation: 'resend', changed: messages })
  const second = await bounce.resend()
  expect(second).toMatchObject({ code: 65, err: expect.stringContaining(`sent again before: ${messages}`) as string })
  await bounce.rests()
  bounce.expectCopies({ ruled: 1 })
}, 300_000)

test('SIGKILL during the resend neither loses a recipient nor sends to one twice', async () => {
  await using bounce = await MassBounce.of(400)
  await bounce.resendThroughKills()
  await bounce.rests()
  bounce.expectCopies({ ruled: 1 })
}, 300_000)

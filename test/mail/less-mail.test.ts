import { expect, test } from 'vitest'
import { requestForLess } from '../../src/mail/less-mail.ts'
import type { Stage } from '../../src/mail/smtp-reply.ts'

const DECISIONS = ['window', 'rate', 'class'] as const

const asked = (stage: Stage, reply: string) => {
  const status = /\d\.\d+\.\d+/.exec(reply)?.[0] ?? `${reply.charAt(0)}.0.0`
  return DECISIONS.filter((decision) => requestForLess(decision, { status, stage, reply }) !== null)
}

test.each<readonly [string, early: readonly string[], late: readonly string[]]>([
  ['421 4.7.0 try later', DECISIONS, DECISIONS],
  ['421 too many', DECISIONS, DECISIONS],
  ['450 4.3.2 not now', DECISIONS, DECISIONS],
  ['550 5.3.2 not now', ['class'], ['class']],
  ['450 4.4.5 congested', DECISIONS, DECISIONS],
  ['450 4.7.0 later', DECISIONS, ['rate']],
  ['550 5.7.0 never', [], []],
  ['450 4.7.28 flood', ['rate', 'class'], ['rate', 'class']],
  ['550 5.7.28 flood', ['rate', 'class'], ['rate', 'class']],
  ['452 4.5.3 too many recipients', ['class'], ['class']],
  ['450 4.2.1 busy', [], []],
])('%s', (reply, early, late) => {
  expect([asked('mail', reply), asked('rcpt', reply), asked('end-of-data', reply)]).toEqual([early, late, late])
})

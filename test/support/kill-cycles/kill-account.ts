/** The account after all kills: what became of every acknowledged recipient. */
import { expect } from 'vitest'
import type { KillableRelay } from '../killable-relay.ts'
import type { Submissions } from './submissions.ts'

export interface KillAccount {
  /** Recipients of acknowledged messages. */
  readonly recipients: number
  readonly notices: number
  /** Recipients and notices that the remote server has got more than once. */
  readonly duplicates: number
  /** The most of them that the kills excuse: IN_FLIGHT deliveries of up to RECIPIENTS each per kill. */
  readonly bound: number
  /** Recipients in the corrupt queue: in delivery at three kills. */
  readonly corrupt: number
}

/** The most deliveries at once to one destination: default_destination_concurrency_limit. */
const IN_FLIGHT = 20
const RECIPIENTS = 2

/** Recipients of the message with a number: all are delivered to one; others are refused, deferred once, or always deferred. */
export function recipientsOf(number: number): readonly string[] {
  const to = (kind: string) => `${kind}-${number}@far.example`
  if (number % 40 === 7) return [to('busy')]
  if (number % 8 === 1) return [to('ann'), to('refuse')]
  return number % 8 === 2 ? [to('ann'), to('defer')] : [to('ann')]
}

/** Recipients of a message that `sendmail` submits. */
export const submittedTo = (number: number): readonly string[] => [`ann-${number}@far.example`]

/** Asserts that nothing is lost and that no more arrived twice than the kills excuse. */
export function account(
  relay: KillableRelay,
  { submissions, kills }: { readonly submissions: Submissions; readonly kills: number },
): KillAccount {
  const { far, acknowledged } = relay
  const corrupt = relay.corrupt()
  const expected = [...acknowledged.keys()]
    .flatMap((number) => (submissions.acknowledged.has(number) ? submittedTo(number) : recipientsOf(number)))
    .filter((address) => !address.startsWith('busy-'))
  const arrived = (address: string) => (address.startsWith('refuse-') ? far.noticedAbout : far.deliveredTo).has(address)
  expect(expected.filter((address) => !arrived(address) && !corrupt.has(numberOf(address)))).toEqual([])
  // A crash repeats the delivery of a notice like that of any mail, but there are never two notices about a recipient.
  expect([...far.noticedAbout].filter(([, ids]) => ids.size !== 1)).toEqual([])
  const repeats = [...far.deliveredTo].reduce((sum, [, times]) => sum + times.length - 1, 0)
  const duplicates = repeats + far.repeatedNotices
  const bound = kills * IN_FLIGHT * RECIPIENTS
  expect(duplicates).toBeLessThanOrEqual(bound)
  return {
    recipients: expected.length,
    notices: far.noticedAbout.size,
    duplicates,
    bound,
    corrupt: corrupt.size,
  }
}

const numberOf = (address: string): number => Number(/-(\d+)@/.exec(address)?.[1])

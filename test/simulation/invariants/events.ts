/** For each recipient, the events for programs tell the same story as the history. */
import type { Recipient } from '../../../src/mail/message.ts'
import type { WorldEvent } from '../../../src/testkit/index.ts'
import type { Story } from '../record.ts'
import type { Complain, Invariant } from '../replay.ts'

type RecipientEvent = Exclude<Extract<WorldEvent, { readonly type: `recipient.${string}` }>, { readonly type: 'recipient.suppressed' }>

const isRecipientEvent = (event: WorldEvent): event is RecipientEvent =>
  event.type.startsWith('recipient.') && event.type !== 'recipient.suppressed'

export const eventsTellTheHistory = (complain: Complain): Invariant => ({
  see({ where, event }) {
    if (where !== 'test' || event.did !== 'told') return
    for (const [n, { seq }] of event.events.entries()) if (seq !== n + 1) complain(`event ${n + 1} has the number ${seq}`)
    const byMessage = Map.groupBy(event.events, ({ data }) => ('queue_id' in data ? data.queue_id : ''))
    byMessage.delete('')
    for (const story of event.stories) compare(story, byMessage.get(story.queueId) ?? [], complain)
    const known = new Set(event.stories.map(({ queueId }) => queueId))
    for (const queueId of byMessage.keys()) if (!known.has(queueId)) complain(`there are events of ${queueId}, which was never queued`)
    for (const one of event.events)
      if (one.type === 'notice.sent' && !known.has(one.data.notice_id)) complain(`the notice ${one.data.notice_id} was never queued`)
  },
})

function compare(story: Story, events: readonly WorldEvent[], complain: Complain): void {
  const { queueId, hasLeft, recipients } = story
  const accepted = events.filter(({ type }) => type === 'message.accepted')
  const removed = events.filter(({ type }) => type === 'message.removed')
  const outcomes = events.filter(isRecipientEvent)
  if (accepted.length !== 1) complain(`${queueId} was accepted ${accepted.length} times by its events`)
  if (removed.length !== (hasLeft ? 1 : 0)) complain(`${queueId} was removed ${removed.length} times by its events`)
  for (const { seq, type } of outcomes) {
    if (seq < (accepted[0]?.seq ?? 0)) complain(`${type} of ${queueId} comes before its acceptance`)
    if (seq > (removed[0]?.seq ?? Infinity)) complain(`${type} of ${queueId} comes after its removal`)
  }
  const byAddress = Map.groupBy(recipients, ({ address }) => address)
  for (const { data } of outcomes)
    if (!byAddress.has(data.recipient)) complain(`${queueId} has an event of ${data.recipient}, who is no recipient`)
  for (const [address, those] of byAddress) {
    const told = outcomes.filter(({ data }) => data.recipient === address)
    const expected = those.flatMap((one) => outcomesOf(story, one))
    // Several recipients may have one address. Then only the number of each outcome is known.
    const shown = those.length === 1 ? told.map(({ data }) => data.outcome) : told.map(({ data }) => data.outcome).toSorted()
    const wanted = those.length === 1 ? expected : expected.toSorted()
    if (shown.join() !== wanted.join())
      complain(`${address} of ${queueId} has the events ${shown.join()}, and the history ${wanted.join()}`)
  }
}

/** Outcomes of a recipient by the history. An expiry without an attempt is an outcome, too. */
function outcomesOf({ history }: Story, { id, state }: Pick<Recipient, 'id' | 'state'>): readonly string[] {
  const made: string[] = history.filter(({ recipient }) => recipient === id).map(({ outcome }) => outcome)
  return state === 'expired' && made.at(-1) !== 'expired' ? [...made, 'expired'] : made
}

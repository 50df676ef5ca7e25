/** The senders with the most of the first messages of a filter, or of those that wait for a destination. */
import type { DestinationName } from '../mail/message.ts'
import { messagePage } from '../queries/messages.ts'
import type { MessagePageJson } from '../resources/message-json.ts'
import type { QueueView, Visible } from '../queries/queue-view.ts'
import type { MessageQuery } from '../queries/message-query.ts'
import type { SendersValue } from './screens/senders-list.ts'

const MESSAGES_COUNTED = 500
const SHOWN = 5

function sendersOf(messages: MessagePageJson['messages'], isAtLeast: boolean): SendersValue {
  const senders = [...Map.groupBy(messages, ({ sender }) => sender)].map(([sender, those]) => ({ sender, messages: those.length }))
  return {
    counted: messages.length,
    at_least: isAtLeast,
    senders: senders.toSorted((a, b) => b.messages - a.messages).slice(0, SHOWN),
  }
}

/** Counts the senders of the first messages of a filter. `first` is its first page, if that has been read. */
export async function firstSenders(
  view: QueueView,
  query: MessageQuery,
  { visible, first }: { readonly visible: Visible; readonly first?: MessagePageJson },
): Promise<SendersValue> {
  const { messages, next } = first?.next === null ? first : await messagePage(view, { ...query, limit: MESSAGES_COUNTED }, visible)
  return sendersOf(messages, next !== null)
}

/** Counts the senders of the first messages that wait for a destination. Mail on hold does not wait. */
export async function waitingSenders(view: QueueView, destination: DestinationName, visible: Visible): Promise<SendersValue> {
  const messages: MessagePageJson['messages'][number][] = []
  for (const queue of ['deferred', 'active', 'incoming'] as const) {
    const page = await messagePage(view, { destination, queue, limit: MESSAGES_COUNTED - messages.length }, visible)
    messages.push(...page.messages)
    if (page.next !== null || messages.length === MESSAGES_COUNTED) return sendersOf(messages, true)
  }
  return sendersOf(messages, false)
}

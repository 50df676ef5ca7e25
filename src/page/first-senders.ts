/** The senders with the most of the first messages of a filter. */
import { messagePage } from '../queries/messages.ts'
import type { MessagePageJson } from '../resources/message-json.ts'
import type { QueueView, Visible } from '../queries/queue-view.ts'
import type { MessageQuery } from '../queries/message-query.ts'
import type { SendersValue } from './screens/senders-list.ts'

const MESSAGES_COUNTED = 500
const SHOWN = 5

/** Counts the senders of the first messages of a filter. `first` is its first page, if that has been read. */
export async function firstSenders(
  view: QueueView,
  query: MessageQuery,
  { visible, first }: { readonly visible: Visible; readonly first?: MessagePageJson },
): Promise<SendersValue> {
  const { messages, next } = first?.next === null ? first : await messagePage(view, { ...query, limit: MESSAGES_COUNTED }, visible)
  const senders = [...Map.groupBy(messages, ({ sender }) => sender)].map(([sender, those]) => ({ sender, messages: those.length }))
  return {
    counted: messages.length,
    at_least: next !== null,
    senders: senders.toSorted((a, b) => b.messages - a.messages).slice(0, SHOWN),
  }
}

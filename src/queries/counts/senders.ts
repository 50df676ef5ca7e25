/** The senders of queued mail with the number of their messages, exact. A count reads all mail of its filter. */
import { shownSender } from '../../mail/envelope.ts'
import type { MessageId } from '../../mail/message.ts'
import { momentOf } from '../../mail/message-times.ts'
import type { SendersJson } from '../../resources/senders-json.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import type { QueueFilter } from '../../store/message-conditions.ts'
import type { Duration } from '../../system/clock.ts'
import { visibleFilter, type MessageQuery } from '../message-query.ts'
import type { Viewer } from '../queue-view.ts'
import { SharedCounts, type Counted, type CountsView } from './shared-counts.ts'

/** Ids per slice, which takes some milliseconds. */
const SLICE = 16_000
/** Maximum number of senders that are counted apart. The messages of further ones are counted together. */
const MOST_SENDERS = 20_000

/** Mail that waits, as the recipients of a destination are counted: also for a later time, but not on hold. */
const WAITING = ['incoming', 'active', 'deferred', 'scheduled'] as const

interface SenderCounts {
  readonly bySender: ReadonlyMap<string, number>
  readonly messages: number
}

/** Selects the mail whose senders are counted; `waits` for mail that waits only. */
interface SenderQuery extends MessageQuery {
  readonly waits?: boolean | undefined
}

async function counted(reader: QueueReader, filter: QueueFilter, waits: boolean, signal: AbortSignal): Promise<SenderCounts> {
  const bySender = new Map<string, number>()
  let messages = 0
  for (let after: MessageId | null = 0; after !== null;) {
    signal.throwIfAborted()
    const queues = waits ? WAITING : null
    const page = { after, through: Number.MAX_SAFE_INTEGER, size: SLICE, queues, destinations: false, senders: true }
    const slice: Awaited<ReturnType<QueueReader['survey']>> = await reader.survey(filter, page)
    messages += slice.messages
    for (const { sender, messages: more } of slice.senders) {
      const before = bySender.get(sender)
      if (before !== undefined || bySender.size < MOST_SENDERS) bySender.set(sender, (before ?? 0) + more)
    }
    after = slice.last
  }
  return { bySender, messages }
}

export class Senders {
  readonly #view: CountsView
  readonly #counts: SharedCounts<SenderCounts>

  constructor(view: CountsView) {
    this.#view = view
    this.#counts = new SharedCounts(view)
  }

  /** The senders with the most messages, at most `limit`. Rejects when the client leaves. */
  async of(query: SenderQuery, limit: number, client: Viewer): Promise<SendersJson> {
    const found = await this.#answer(query, client, null)
    client.signal.throwIfAborted()
    if (found === undefined) throw new Error('the senders were not counted')
    return sendersJson(found, limit)
  }

  /** As `of`; undefined when they are not counted within `wait`. */
  async within(
    wait: Duration,
    query: SenderQuery,
    { limit, ...client }: Viewer & { readonly limit: number },
  ): Promise<SendersJson | undefined> {
    const found = await this.#answer(query, client, wait)
    return found === undefined ? undefined : sendersJson(found, limit)
  }

  #answer({ waits = false, ...query }: SenderQuery, { visible, signal }: Viewer, wait: Duration | null) {
    const { reader, clock } = this.#view
    const filter = visibleFilter(query, visible, momentOf(clock))
    return this.#counts.answer(JSON.stringify([query, waits, visible]), (end) => counted(reader, filter, waits, end), { wait, signal })
  }
}

const sendersJson = ({ value: { bySender, messages }, as_of }: Counted<SenderCounts>, limit: number): SendersJson => ({
  senders: [...bySender]
    .toSorted(([one, a], [other, b]) => b - a || (one < other ? -1 : 1))
    .slice(0, limit)
    .map(([sender, count]) => ({ sender: shownSender(sender), messages: count })),
  senders_counted: bySender.size,
  messages,
  as_of,
})

/**
 * Searches the queue and the history together. The kind of the text decides: a queue id, a Message-ID, an address or a domain, each whole or
 * by its beginning, else words of the subject by their beginning; all by the index. A text with `*` within it is searched in all addresses.
 */
import { withALabels } from '../../mail/address.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import type { Requester } from '../../http/requests/requester.ts'
import type { MessageId } from '../../mail/message.ts'
import { addressPattern } from '../../patterns/filter-pattern.ts'
import { foundMessageJson, type SearchPageJson } from '../../resources/found-message-json.ts'
import { entriesOf, hasTerms, termFor, wordsOf, type SearchTerm } from '../../store/search/search-terms.ts'
import type { MessageDetails } from '../../store/queue-reader.ts'
import { addressScan } from './address-scan.ts'
import { cursorPosition, cursorText } from '../cursor.ts'
import { withSeen } from '../messages.ts'
import { asOf, type QueueView } from '../queue-view.ts'

interface SearchQuery {
  readonly q: string
  readonly limit: number
  readonly after?: string | undefined
}

interface Searcher {
  readonly requester: Pick<Requester, 'content' | 'destinations'>
  readonly signal: AbortSignal
}

/** A member by which messages are searched, with the terms that they must have. */
interface Alternative {
  readonly member: Exclude<SearchPageJson['searched'][number], 'queue_id' | 'part_of_address'>
  readonly terms: readonly SearchTerm[]
}

/** Number of characters from which a beginning is searched. A shorter text is found as a whole only. */
export const SHORTEST_PREFIX = 3

const isPrefix = (text: string): boolean => text.length >= SHORTEST_PREFIX

/** The kinds of a text. A client without the right `content` does not search subjects. */
export function alternativesOf(text: string, content: boolean): readonly Alternative[] {
  const asked = text.replace(/\*$/, '').trim()
  const one = (member: Alternative['member'], term: SearchTerm): Alternative => ({ member, terms: [term] })
  if (asked === '') return []
  if (asked.startsWith('<')) return [one('message_id', termFor.messageId(asked, !asked.endsWith('>')))]
  if (asked.startsWith('@')) return asked === '@' ? [] : [one('domain', termFor.domain(withALabels(asked.slice(1)), isPrefix(asked)))]
  const words = wordsOf(asked).map((word) => termFor.word(word, isPrefix(word)))
  const subject: readonly Alternative[] = content && words.length > 0 ? [{ member: 'subject', terms: words }] : []
  if (/\s/.test(asked) && !asked.startsWith('"')) return subject
  if (asked.includes('@'))
    return [one('address', termFor.address(addressPattern(asked), true)), one('message_id', termFor.messageId(asked, true))]
  const prefix = isPrefix(asked)
  return [one('address', termFor.address(asked, prefix)), one('domain', termFor.domain(withALabels(asked), prefix)), ...subject]
}

/** One page of the messages in the queue and in the history that a text names, the newest first. */
export async function searchPage(view: QueueView, query: SearchQuery, searcher: Searcher): Promise<SearchPageJson> {
  const text = query.q.trim()
  if (text.replace(/\*$/, '').includes('*')) return addressScan(view, { ...query, q: text }, searcher)
  const { destinations: visible, content } = searcher.requester
  const seen = (one: MessageDetails): MessageDetails | undefined => (visible === null ? one : withSeen(one, visible))
  const json = (one: MessageDetails) => foundMessageJson(one, view.clock.wall, content)
  const known = parseQueueId(text) === undefined ? undefined : await view.reader.details(text)
  const asked = known === undefined ? undefined : seen(known)
  if (asked !== undefined) return { searched: ['queue_id'], messages: [json(asked)], progress: null, next: null, as_of: asOf(view) }
  const alternatives = alternativesOf(text, content)
  const conditions = ['search', text, visible, content]
  const before = query.after === undefined ? null : (cursorPosition(query.after, conditions)[0] ?? null)
  const { messages, next } = await merged(view, alternatives, { before, limit: query.limit })
  return {
    searched: alternatives.map(({ member }) => member),
    messages: messages.flatMap((one) => {
      const shown = seen(one)
      // A message that was found by a recipient whom the client may not see would tell of that recipient.
      return shown === undefined || (visible !== null && !isFound(shown, alternatives)) ? [] : [json(shown)]
    }),
    progress: null,
    next: next === null ? null : cursorText([next], conditions),
    as_of: asOf(view),
  }
}

/** Whether the text names what is left of a message. */
function isFound({ message, recipients }: MessageDetails, alternatives: readonly Alternative[]): boolean {
  const entries = entriesOf(
    message,
    recipients.map(({ address }) => address),
  )
  return alternatives.some(({ terms }) => hasTerms(entries, terms))
}

/** The next messages of any alternative. Each alternative is read down to its own `next`, below which no message may be taken yet. */
async function merged(
  { reader }: Pick<QueueView, 'reader'>,
  alternatives: readonly Alternative[],
  page: { readonly before: MessageId | null; readonly limit: number },
): Promise<{ readonly messages: readonly MessageDetails[]; readonly next: MessageId | null }> {
  const found = await Promise.all(alternatives.map(({ terms }) => reader.search(terms, page)))
  const end = Math.max(0, ...found.map(({ next }) => next ?? 0))
  const byId = Map.groupBy(
    found.flatMap(({ messages }) => messages),
    ({ message }) => message.id,
  )
  const ids = [...byId.keys()].filter((id) => id >= end).toSorted((a, b) => b - a)
  const taken = ids.slice(0, page.limit)
  const messages = taken.flatMap((id) => [...new Map((byId.get(id) ?? []).map((one) => [one.message.createdAt, one])).values()])
  const last = taken.at(-1)
  return { messages, next: taken.length < ids.length ? (last ?? null) : end === 0 ? null : end }
}

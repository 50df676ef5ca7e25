/** Queries for messages: pages, whole listings, counts, one message, and its content. */
import type { Requester } from '../http/requests/requester.ts'
import {
  pageEntryJson,
  RECIPIENTS_SHOWN,
  submissionJson,
  type MessageCountJson,
  type MessagePageJson,
  type PageEntryJson,
} from '../resources/message-json.ts'
import { messageRowJson, submissionRowJson } from '../resources/message-row-json.ts'
import { listingLines } from '../presentation/message-lines.ts'
import type { DestinationRecords } from '../presentation/recipient-status.ts'
import { jsonLines } from '../presentation/text.ts'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../http/problem-details.ts'
import { momentOf } from '../mail/message-times.ts'
import { parseQueueId } from '../mail/queue-id.ts'
import { maskControls } from '../mail/smtp-reply.ts'
import { pages } from '../queue/list-pages.ts'
import { countMatching } from '../queue/operation-plan.ts'
import { submissions } from '../queue/intake/maildrop-listing.ts'
import { messageContent } from '../queue/content-parts.ts'
import { ContentUnreadable } from '../store/errors.ts'
import type { ListedMessage, MessageDetails } from '../store/queue-reader.ts'
import { seconds, type Duration } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { eventLoopTurn } from '../system/event-loop.ts'
import { absentContent } from './absent-content.ts'
import { cursorPosition, cursorText } from './cursor.ts'
import { visibleFilter, maySee, type MessageQuery } from './message-query.ts'
import { recordsOf, type QueueView, type Viewer, type Visible } from './queue-view.ts'

/** Formatted between two turns of the event loop. */
const MESSAGES_PER_TURN = 25
const STREAM_PAGE = 50

export const UNKNOWN_MESSAGE: ProblemKind = {
  slug: 'unknown-message',
  status: 404,
  title: 'Unknown message',
  about: 'Neither the queue nor its history has a message with this queue id, or the token may not see it.',
}

const NO_CONTENT: ProblemKind = {
  slug: 'content-removed',
  status: 410,
  title: 'Content removed',
  about: 'The message has left the queue, and its content is not stored any more.',
}

const KEPT_CONTENT: ProblemKind = {
  slug: 'content-kept',
  status: 410,
  title: 'Content kept',
  about:
    'The message has left the queue. Its content is stored until the time in `detail`, so that it can be sent again (`returned_content_retention`), and is not shown.',
}

const DAMAGED_CONTENT: ProblemKind = {
  slug: 'content-damaged',
  status: 410,
  title: 'Content damaged',
  about:
    'A part of the stored content is missing, or differs from what was queued; the detail names it. The message cannot be delivered: a backup of the queue may have its content. The header can be read while the first part is sound (`part=header`).',
}

/** Problems of the requests for a content. */
export const CONTENT_PROBLEMS = [UNKNOWN_MESSAGE, NO_CONTENT, KEPT_CONTENT, DAMAGED_CONTENT] as const

/** Lines of a listing: whole messages, or the columns of `deferd queue list`. */
export const LISTING_FORMS = ['messages', 'rows'] as const
type ListingForm = (typeof LISTING_FORMS)[number]

interface PageQuery extends MessageQuery {
  readonly limit: number
  readonly after?: string | undefined
  readonly order?: 'oldest' | 'newest' | undefined
}

/** Leaves out the recipients that a client may not see. */
function seen<M extends ListedMessage>(listed: M, visible: Visible): M {
  if (visible === null) return listed
  const recipients = listed.recipients.filter(({ destination }) => maySee(visible, destination))
  return { ...listed, recipients, recipientCount: recipients.length }
}

/** A message of a page, with the recipients that a client may see. */
export const pageEntry = (listed: ListedMessage, visible: Visible, records: DestinationRecords, wall: WallView): PageEntryJson =>
  pageEntryJson(seen(listed, visible), records, wall)

/** One page of messages, oldest or newest first. The pages of one listing show no message that arrived after the first of them was read. */
export async function messagePage(
  view: QueueView,
  { limit, after, order = 'oldest', ...query }: PageQuery,
  visible: Visible,
): Promise<MessagePageJson> {
  const { wall } = view.clock
  const now = view.clock.now()
  const conditions = [query, visible, order]
  const newestFirst = order === 'newest'
  const [from = 0, through = await view.reader.lastId()] = after === undefined ? [] : cursorPosition(after, conditions)
  const bounds = { after: from ?? 0, through: through ?? undefined, limit, newestFirst }
  // A client with limited destinations sees some of the recipients only, so all are read.
  const recipients = visible === null ? RECIPIENTS_SHOWN : undefined
  const listed = await view.reader.list(visibleFilter(query, visible, { now, wall }), { ...bounds, recipients })
  const records = await recordsOf(view)
  const messages: PageEntryJson[] = []
  for (const [n, one] of listed.entries()) {
    if (n > 0 && n % MESSAGES_PER_TURN === 0) await eventLoopTurn()
    messages.push(pageEntry(one, visible, records, wall))
  }
  const last = listed.length < limit ? undefined : listed.at(-1)
  const next = last === undefined ? null : cursorText(newestFirst ? [0, last.message.id - 1] : [last.message.id, through], conditions)
  return { messages, next, as_of: wall.seconds(now) }
}

/**
 * All messages as the lines of `deferd queue list --json`, with the entries of the maildrop first when no condition names a queue. Ends
 * early when `signal` aborts.
 */
export async function* messageLines(
  view: QueueView,
  query: MessageQuery & { readonly limit?: number | undefined; readonly form?: ListingForm | undefined },
  { visible, signal }: Viewer,
): AsyncGenerator<Uint8Array> {
  const { limit = Infinity, form = 'messages', ...conditions } = query
  const { wall } = view.clock
  const filter = visibleFilter(conditions, visible, momentOf(view.clock))
  let left = limit
  if (filter.queue === null && visible === null) {
    for await (const batch of submissions(view.loaded().config.queue_directory, filter, wall)) {
      const listed = batch.slice(0, left)
      left -= listed.length
      yield jsonLines(listed.map((one) => (form === 'rows' ? submissionRowJson(one, wall) : submissionJson(one, wall))))
      if (left === 0) return
    }
  }
  const records = await recordsOf(view)
  for await (const page of pages(view.reader, { filter, limit: left, size: STREAM_PAGE })) {
    if (signal.aborted) return
    const shown = page.map((listed) => seen(listed, visible))
    yield form === 'rows' ? jsonLines(shown.map((listed) => messageRowJson(listed, records, wall))) : listingLines(shown, records, wall)
  }
}

/** A count ends at this number, and a count for a program also after a time. */
const COUNT_MOST = 100_000
const COUNT_WITHIN: Duration = seconds(0.2)

/** Counts the messages of a filter, up to COUNT_MOST and for `within`. */
export async function messageCount(
  view: QueueView,
  query: MessageQuery,
  { visible, within = COUNT_WITHIN }: { readonly visible: Visible; readonly within?: Duration },
): Promise<MessageCountJson> {
  const limits = { most: COUNT_MOST, within }
  const { count, isAtLeast } = await countMatching(view, visibleFilter(query, visible, momentOf(view.clock)), limits)
  return { count, at_least: isAtLeast }
}

/** A message in the queue or in the history. Throws Problem when there is none that the client may see. */
export async function messageDetails(view: QueueView, queueId: string, visible: Visible): Promise<MessageDetails> {
  const story = parseQueueId(queueId) === undefined ? undefined : await view.reader.details(queueId)
  const shown = story === undefined || visible === null ? story : withSeen(story, visible)
  if (shown !== undefined) return shown
  throw new Problem(UNKNOWN_MESSAGE, `there is no message ${maskControls(queueId)}, neither in the queue nor in its history`)
}

/** Leaves out the recipients that a client may not see; undefined when none is left. */
export function withSeen(story: MessageDetails, visible: string): MessageDetails | undefined {
  const recipients = story.recipients.filter(({ destination }) => maySee(visible, destination))
  if (recipients.length === 0) return undefined
  const ids = new Set(recipients.map(({ id }) => id))
  return { ...story, recipients, history: story.history.filter(({ recipient }) => ids.has(recipient)) }
}

type ContentPart = 'all' | 'header' | 'body'

/**
 * False for a content that is not stored any more. Reads its first part, and all parts of a message in `corrupt`, so that a damage is found
 * before the answer begins. Throws ContentUnreadable.
 */
async function isStored({ reader }: QueueView, { message, queue }: MessageDetails, part: ContentPart): Promise<boolean> {
  const most = queue === 'corrupt' && part !== 'header' ? Infinity : 1
  for (let index = 0; index < most; index++) if ((await reader.readChunk(message, index)) === undefined) return index > 0
  return true
}

/** Throws the problem of a content that is damaged, and any other error as it is. */
function throwDamage(error: unknown, queueId: string): never {
  if (!(error instanceof ContentUnreadable)) throw error
  const detail = `the content of ${queueId} cannot be read: ${error.message}; a backup of the queue may have it`
  throw new Problem(DAMAGED_CONTENT, detail, { cause: error })
}

async function* undamaged(chunks: AsyncGenerator<Uint8Array>, queueId: string): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } catch (error) {
    throwDamage(error, queueId)
  }
}

/** The content as it would be sent. Throws Problem when it is damaged or not stored any more. */
export async function contentOf(
  view: QueueView,
  queueId: string,
  { visible, part }: { readonly visible: Visible; readonly part: ContentPart },
): Promise<AsyncGenerator<Uint8Array>> {
  const story = await messageDetails(view, queueId, visible)
  if (visible !== null && (await messageDetails(view, queueId, null)).recipients.some(({ destination }) => !maySee(visible, destination)))
    throw new Problem(HTTP_PROBLEMS.notPermitted, `the token is limited to the destinations ${visible}, and the message has others too`)
  if (story.queue === 'gone' || !(await isStored(view, story, part).catch((error: unknown) => throwDamage(error, queueId)))) {
    const { isKept, detail, instants } = await absentContent(view.reader, story.message, { queueId, wall: view.clock.wall })
    throw new Problem(isKept ? KEPT_CONTENT : NO_CONTENT, detail, { instants })
  }
  return undamaged(messageContent(view.reader, story, { header: part !== 'body', body: part !== 'header' }), queueId)
}

/** Octets that are read of a content to be looked at, which may have hundreds of megabytes. Parsing them takes a few milliseconds. */
export const BEGINNING = 1_000_000

export interface ContentBeginning {
  readonly content: Uint8Array
  /** False when the content goes on. */
  readonly whole: boolean
}

/** Throws Problem for a client without the right. */
export function requireContentRight({ content }: Pick<Requester, 'content'>): void {
  if (!content) throw new Problem(HTTP_PROBLEMS.notPermitted, 'the content of messages needs the right `content` of the token or session')
}

/** Throws Problem for a client without the right, and for a content that is not stored. */
export async function contentBeginning(view: QueueView, queueId: string, requester: Requester): Promise<ContentBeginning> {
  requireContentRight(requester)
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of await contentOf(view, queueId, { visible: requester.destinations, part: 'all' })) {
    chunks.push(chunk)
    size += chunk.length
    if (size > BEGINNING) break
  }
  return { content: Buffer.concat(chunks).subarray(0, BEGINNING), whole: size <= BEGINNING }
}

/** Finds the mail of the history that can be sent again: failed recipients of messages whose content is kept. */
import type { ContentId, MessageId, Recipient, DestinationName } from '../mail/message.ts'
import { isOfAliases } from '../mail/message.ts'
import { requeuedAs } from '../mail/requeued.ts'
import { mayBeResent } from '../store/returned-mail.ts'
import { departedRecipients, type HistoryFilter, type MessageDetails, type QueueReader } from '../store/queue-reader.ts'
import type { KeptContent } from '../store/records/kept-content.ts'
import type { SuppressedRecipient, Suppressions } from '../suppression/suppressions.ts'

/** Messages of the history: by id, or those that meet a filter. */
export type DepartedSelection =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'filter'; readonly filter: HistoryFilter }

export const ANY_DEPARTURE: HistoryFilter = {
  sender: null,
  recipient: null,
  outcome: null,
  class: null,
  status: null,
  since: null,
  until: null,
}

export interface ResendTerms {
  readonly selection: DepartedSelection
  /** True to send to recipients again that were sent again before. */
  readonly again: boolean
  /** Whether the client may see mail of a destination. */
  readonly isVisible: (destination: DestinationName) => boolean
}

/** A message that can be sent again. */
export interface Resendable {
  readonly details: MessageDetails
  readonly kept: KeptContent
  readonly recipients: readonly Recipient[]
}

/** Failed recipients that are left out. */
export interface LeftOut {
  /** Sent again before, or as a later message of the selection. */
  sentBefore: number
  /** Without a content. */
  withoutContent: number
  /** Of messages whose other recipients were requeued, with the content. */
  requeued: number
  /** Refused by the suppression list. */
  suppressed: number
}

export const noneLeftOut = (): LeftOut => ({ sentBefore: 0, withoutContent: 0, requeued: 0, suppressed: 0 })

/** A failed recipient on the suppression list, whose content is kept. */
interface SuppressedDeparture extends SuppressedRecipient {
  readonly sender: string
  readonly recipient: string
}

interface SelectionDeps {
  readonly reader: Pick<QueueReader, 'departed' | 'details' | 'records'>
  readonly suppressions: Pick<Suppressions, 'find'>
}

interface Selecting {
  readonly leftOut: LeftOut
  readonly unknown: string[]
  /** Called for each recipient on the suppression list. */
  readonly listed: (one: SuppressedDeparture) => void
  /** Messages of a round; at most ROUND. */
  readonly size?: number
  /** Called before each read. Throws when the selection must end. */
  readonly mayGoOn: () => void
}

/** Messages of a round, which is one commit. */
const ROUND = 64

async function* messagesOf(
  { reader }: SelectionDeps,
  { selection, isVisible }: { readonly selection: DepartedSelection; readonly isVisible: (recipient: Recipient) => boolean },
  { unknown, mayGoOn }: Pick<Selecting, 'unknown' | 'mayGoOn'>,
): AsyncGenerator<readonly MessageDetails[]> {
  if (selection.kind === 'ids') {
    for (const id of new Set(selection.ids)) {
      mayGoOn()
      const found = await reader.details(id)
      if (found?.queue === 'gone' && found.recipients.some(isVisible)) yield [found]
      else unknown.push(id)
    }
    return
  }
  for (let before: number | null | undefined; before !== null;) {
    mayGoOn()
    const page = await reader.departed(selection.filter, { before: before ?? null, limit: ROUND })
    yield page.messages
    before = page.next
  }
}

/** The recipients that the suppression list does not refuse, as at RCPT. */
async function unsuppressed(
  recipients: readonly Recipient[],
  { sender, suppressions, listed }: Pick<SelectionDeps, 'suppressions'> & Pick<Selecting, 'listed'> & { readonly sender: string },
): Promise<readonly Recipient[]> {
  const refused = new Set<Recipient>()
  for (const one of recipients) {
    const found = await suppressions.find(sender, one.address)
    if (found === undefined) continue
    listed({ ...found, sender, recipient: one.address })
    if (found.isRefused) refused.add(one)
  }
  return recipients.filter((one) => !refused.has(one))
}

/** Mail that was sent again and failed again: messages of one content, of which each address is sent to once. */
class ChosenCopies {
  readonly #addresses = new Map<ContentId, Set<string>>()

  /** The recipients to whom no chosen message of the same content goes. */
  others({ message: { contentId } }: MessageDetails, recipients: readonly Recipient[]): readonly Recipient[] {
    const chosen = this.#addresses.get(contentId)
    return chosen === undefined ? recipients : recipients.filter(({ address }) => !chosen.has(address))
  }

  /** Keeps those alone of which another copy may follow. */
  add({ message: { id, contentId } }: MessageDetails, recipients: readonly Recipient[]): void {
    for (const { address, resentAs } of recipients) {
      if (resentAs === undefined && id === contentId) continue
      const chosen = this.#addresses.get(contentId) ?? new Set()
      this.#addresses.set(contentId, chosen.add(address))
    }
  }
}

/**
 * The messages in rounds of at most `size`, the last that left first; of mail that was sent again and failed again, the first of the selection. Counts the failed recipients that are left out, and adds ids that the
 * history does not have to `unknown`.
 */
export async function* resendable(
  deps: SelectionDeps,
  { selection, again, isVisible }: ResendTerms,
  { leftOut, unknown, listed, size = ROUND, mayGoOn }: Selecting,
): AsyncGenerator<readonly Resendable[]> {
  const filter = selection.kind === 'ids' ? ANY_DEPARTURE : selection.filter
  const isSeen = ({ destination }: Recipient): boolean => isOfAliases(destination) || isVisible(destination)
  const copies = new ChosenCopies()
  let round: Resendable[] = []
  for await (const page of messagesOf(deps, { selection, isVisible: isSeen }, { unknown, mayGoOn })) {
    for (const details of page) {
      // As in the queue, a client changes a message only when it may see all of its recipients.
      if (!details.recipients.every(isSeen)) continue
      const failed = departedRecipients(filter, details).filter((one) => mayBeResent(one, true) && !isOfAliases(one.destination))
      const wanted = copies.others(
        details,
        failed.filter((one) => mayBeResent(one, again)),
      )
      leftOut.sentBefore += failed.length - wanted.length
      if (wanted.length === 0) continue
      const kept = await deps.reader.records.keptContents.of(details.message.id)
      if (kept === undefined) {
        leftOut[details.recipients.some(isRequeued) ? 'requeued' : 'withoutContent'] += wanted.length
        continue
      }
      copies.add(details, wanted)
      const recipients = await unsuppressed(wanted, { sender: details.message.sender, suppressions: deps.suppressions, listed })
      leftOut.suppressed += wanted.length - recipients.length
      if (recipients.length > 0) round.push({ details, kept, recipients })
      if (round.length >= Math.min(size, ROUND)) {
        yield round
        round = []
      }
    }
  }
  if (round.length > 0) yield round
}

const isRequeued = ({ last }: Recipient): boolean => requeuedAs(last?.reason ?? null) !== undefined

/** Number of examples in a plan. */
const EXAMPLES = 20

/** The effect that sending again would have. */
export interface ResendPlan extends Readonly<LeftOut> {
  readonly messages: number
  readonly recipients: number
  /** Sizes of the messages, with the header that was added to them: a new one, with another signature, has about the same size. */
  readonly bytes: number
  /** Recipients by destination, the most first. */
  readonly destinations: readonly { readonly destination: DestinationName; readonly recipients: number }[]
  readonly examples: readonly MessageDetails[]
  /** Recipients that are sent to although they are on the suppression list. */
  readonly warned: number
  /** Examples of recipients on the suppression list, each address of a scope once. */
  readonly listed: readonly SuppressedDeparture[]
  readonly unknown: readonly string[]
}

/** Changes nothing. */
export async function resendPlan(deps: SelectionDeps, terms: ResendTerms, mayGoOn: () => void): Promise<ResendPlan> {
  const leftOut = noneLeftOut()
  const unknown: string[] = []
  const suppressed = new Map<string, SuppressedDeparture>()
  let warned = 0
  const listed = (one: SuppressedDeparture): void => {
    if (!one.isRefused) warned++
    if (suppressed.size < EXAMPLES) suppressed.set(`${one.entry.scope} ${one.recipient}`, one)
  }
  const seen = new Set<MessageId>()
  const examples: MessageDetails[] = []
  const destinations = new Map<DestinationName, number>()
  let [recipients, bytes] = [0, 0]
  for await (const round of resendable(deps, terms, { leftOut, unknown, listed, mayGoOn })) {
    for (const one of round) {
      seen.add(one.details.message.id)
      recipients += one.recipients.length
      bytes += one.details.message.size
      if (examples.length < EXAMPLES) examples.push({ ...one.details, recipients: one.recipients })
      for (const { destination } of one.recipients) destinations.set(destination, (destinations.get(destination) ?? 0) + 1)
    }
  }
  const byCount = [...destinations].map(([destination, count]) => ({ destination, recipients: count }))
  return {
    messages: seen.size,
    recipients,
    bytes,
    destinations: byCount.toSorted((a, b) => b.recipients - a.recipients),
    examples,
    warned,
    listed: [...suppressed.values()],
    unknown,
    ...leftOut,
  }
}

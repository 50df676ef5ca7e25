/** The attempts of a message: those with the same reply as one row, which opens to each of them. */
import { causeOf } from '../../../mail/failure-cause.ts'
import { html, type Html, type Part } from '../../../presentation/html.ts'
import type { MessageStoryJson } from '../../../resources/message-story-json.ts'
import { section } from '../../markup/frame.ts'
import { table, type Column } from '../../markup/html-table.ts'
import type { ListPage } from './pages-of-message.ts'
import { dialogueLink } from '../../markup/links.ts'
import { marked } from '../../markup/marks.ts'
import { replyPart } from '../../markup/reply.ts'
import { clockTime, count, plural, span } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import { addressPart, breakable } from '../../markup/long-words.ts'

type Attempt = MessageStoryJson['history'][number]

/** Attempts with the same outcome and reply, without its variable parts; the first attempt first. */
export type FoldedAttempts = readonly [Attempt, ...Attempt[]]

/** The attempts by outcome and reply, those with the latest attempt first. */
export function foldedAttempts(history: readonly Attempt[]): readonly FoldedAttempts[] {
  const byTime = history.toSorted((a, b) => a.time - b.time)
  const groups = Map.groupBy(byTime, ({ outcome, reply, reason }) => `${outcome} ${causeOf({ reply: reply ?? undefined, reason })}`)
  return [...groups.values()]
    .flatMap(([first, ...others]): readonly FoldedAttempts[] => (first === undefined ? [] : [[first, ...others]]))
    .toSorted((a, b) => lastOf(b).time - lastOf(a).time)
}

const lastOf = (attempts: FoldedAttempts): Attempt => attempts.at(-1) ?? attempts[0]

const DELAYS = ['in the queue', 'connection', 'transmission'] as const

/** `0.2 s connection, 0.4 s transmission`: the delays that are not zero, without the first one, which is the time from the arrival to the attempt. */
export const delaysText = ([, ...delays]: readonly number[]): string =>
  DELAYS.flatMap((name, i) => {
    const seconds = Number((delays[i] ?? 0).toFixed(1))
    return seconds === 0 ? [] : [`${seconds < 60 ? `${seconds} s` : span(seconds * 1_000)} ${name}`]
  }).join(', ') || 'less than 0.1 s'

const server = ({ host, stage }: Attempt): Html => html`${breakable(host ?? 'none reached')} <span class="faint">(${stage})</span>`

/** The server of the attempts, or the number of different ones. */
function serversOf(attempts: FoldedAttempts): Part {
  const hosts = new Set(attempts.map(({ host }) => host))
  return hosts.size === 1 ? server(attempts[0]) : plural(hosts.size, 'server')
}

/** Attempts of a row that are shown one by one. */
const MOST_EACH = 50

const dialoguePart = (view: View, queueId: string, session: string | null | undefined, words: string): Part =>
  session === null || session === undefined
    ? null
    : html`<a class="to-dialogue" href="${dialogueLink(view, queueId, session)}">${words}</a>`

function each(view: View, queueId: string, attempts: FoldedAttempts, hasSeveral: boolean): Part {
  const shown = attempts.slice(-MOST_EACH)
  const hasDialogue = attempts.length > 1 && shown.some(({ session }) => session !== null)
  const columns: readonly Column<Attempt>[] = [
    { heading: 'Time', isTitle: true, cell: ({ time }) => clockTime(view, time) },
    ...(hasSeveral ? [{ heading: 'Recipient', cell: ({ recipient }: Attempt) => addressPart(recipient) }] : []),
    { heading: 'Server', kind: 'code', cell: server },
    { heading: 'Took', cell: ({ delays }) => delaysText(delays) },
    ...(hasDialogue ? [{ heading: 'Dialogue', cell: ({ session }: Attempt) => dialoguePart(view, queueId, session, 'show') }] : []),
  ]
  return html`<details class="each">
    <summary>
      ${attempts.length === 1 ? 'details' : shown.length < attempts.length ? `the last ${count(shown.length)} of them` : 'each of them'}
    </summary>
    ${table({ caption: 'Attempts with this reply', columns, rows: shown.toReversed(), empty: '' })}
  </details>`
}

/** Begin and end of the attempts. */
const timesOf = (view: View, attempts: FoldedAttempts): Html =>
  attempts.length === 1
    ? html`${clockTime(view, attempts[0].time)}`
    : html`${clockTime(view, attempts[0].time)} – ${clockTime(view, lastOf(attempts).time)}`

const recipientsOf = (attempts: FoldedAttempts): Html => {
  const addresses = new Set(attempts.map(({ recipient }) => recipient))
  return addresses.size === 1 ? addressPart(attempts[0].recipient) : html`${plural(addresses.size, 'recipient')}`
}

/** The dialogue of the latest attempt that has one. */
const latestDialogue = (attempts: FoldedAttempts): string | null | undefined =>
  attempts.findLast(({ session }) => session !== null)?.session

const columnsOf = (view: View, queueId: string, hasSeveral: boolean): readonly Column<FoldedAttempts>[] => [
  { heading: 'Attempts', isTitle: true, cell: (attempts) => `${count(attempts.length)} ×` },
  { heading: 'Outcome', cell: ([{ outcome }]) => marked(outcome) },
  { heading: 'Time', cell: (attempts) => timesOf(view, attempts) },
  ...(hasSeveral ? [{ heading: 'Recipients', cell: recipientsOf }] : []),
  { heading: 'Server', kind: 'code', cell: serversOf },
  {
    heading: 'Reply',
    kind: 'reply',
    cell: (attempts) => {
      const { reply, reason, hint } = lastOf(attempts)
      return html`${replyPart(reply ?? reason, { hint })}
      ${dialoguePart(view, queueId, latestDialogue(attempts), 'Show the dialogue')}${each(view, queueId, attempts, hasSeveral)}`
    },
  },
]

interface ShownAttempts {
  readonly page: ListPage<FoldedAttempts>
  /** Links to the other pages. */
  readonly links: Part
}

export const attemptsSection = (
  view: View,
  { queue_id: id, history, recipients }: MessageStoryJson,
  { page, links }: ShownAttempts,
): Html =>
  section(
    'Attempts',
    html`${table({
      caption: 'Attempts by reply',
      columns: columnsOf(view, id, recipients.length > 1),
      rows: page.rows,
      empty: 'No attempt yet.',
      kind: 'attempts',
    })}${links}`,
    { id: 'attempts', aside: history.length === 0 ? null : plural(history.length, 'attempt') },
  )

/** The recipients and the attempts of a message in pages. Pure. */
import type { MessageStoryJson } from '../../../resources/message-story-json.ts'

type Recipient = MessageStoryJson['recipients'][number]

const ROWS_PER_PAGE = 50

/** Numbers of the pages that are shown. */
export interface MessagePages {
  readonly recipients: number
  readonly attempts: number
}

/** A page of a list, counted from 1. */
export interface ListPage<Row> {
  readonly rows: readonly Row[]
  readonly page: number
  readonly pages: number
}

/** The page with a number. A number beyond the last page is that of the last page. */
export function pageOf<Row>(all: readonly Row[], asked: number): ListPage<Row> {
  const pages = Math.max(1, Math.ceil(all.length / ROWS_PER_PAGE))
  const page = Math.min(pages, Number.isInteger(asked) && asked > 0 ? asked : 1)
  return { rows: all.slice((page - 1) * ROWS_PER_PAGE, page * ROWS_PER_PAGE), page, pages }
}

const isFailing = ({ attempts, delay_reason: why }: Recipient): boolean => attempts > 0 && (why ?? null) !== null

/** Failing ones are first, then those that were returned, then those that wait for their first attempt, and those that have the message. */
function rank(one: Recipient): number {
  if (one.state === 'bounced' || one.state === 'expired') return 1
  if (one.state === 'waiting' || one.state === 'leased' || one.state === 'parked') return isFailing(one) ? 0 : 2
  return 3
}

export const failingFirst = (recipients: readonly Recipient[]): readonly Recipient[] => recipients.toSorted((a, b) => rank(a) - rank(b))

/**
 * Cursors of pages: the position after the last entry of a page, and a hash of the conditions for which it holds. A cursor is text
 * without meaning for clients.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { Problem, type ProblemKind } from '../http/problem-details.ts'

export const CURSOR_PROBLEM: ProblemKind = {
  slug: 'cursor',
  status: 400,
  title: 'Cursor of another request',
  about: 'The cursor was made for other conditions or another order, or is no cursor: begin with the first page.',
}

const hashOf = (conditions: unknown): string => createHash('sha256').update(JSON.stringify(conditions)).digest('base64url').slice(0, 11)

/** Text of a cursor. `position` holds the state of the page. */
export const cursorText = (position: readonly (number | null)[], conditions: unknown): string =>
  Buffer.from(JSON.stringify([hashOf(conditions), ...position])).toString('base64url')

/** Position of a cursor. Throws Problem when it was not made for these conditions. */
export function cursorPosition(text: string, conditions: unknown): readonly (number | null)[] {
  const shape = z.tuple([z.literal(hashOf(conditions))]).rest(z.int().min(0).nullable())
  const parsed = shape.safeParse(jsonOf(Buffer.from(text, 'base64url').toString()))
  if (parsed.success) return parsed.data.slice(1) as (number | null)[]
  throw new Problem(CURSOR_PROBLEM, 'the cursor does not belong to these conditions: begin with the first page')
}

/** A whole number in the text of a query; null for other text. */
export const numberIn = (text: string): number | null => (/^\d{1,15}$/.test(text) ? Number(text) : null)

/** A parameter that is a whole number, in decimal digits: JavaScript also reads `0x10`, `1e2` and an empty text as numbers. */
export const wholeNumber = (least: number, most: number) =>
  z.preprocess(
    (given) => (typeof given === 'string' ? (numberIn(given) ?? given) : given),
    z
      .int({ error: ({ code }) => (code === 'invalid_type' ? 'expected a whole number' : undefined) })
      .min(least)
      .max(most),
  )

/** Number of the event after which a page begins; 0 without a cursor. Throws Problem for other text. */
export function positionIn(after: string | undefined): number {
  const position = after === undefined ? 0 : numberIn(after)
  if (position !== null) return position
  throw new Problem(CURSOR_PROBLEM, 'expected `next` of the former page')
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
